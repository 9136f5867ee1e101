/* Included before the C++ sources of a bare kernel that the vendor's compiler builds: what its <sfpi.h> expects to be
 * declared. Vector operations whose operands are known at run time only are stores to the push window (T24). */

#if defined(__riscv_xtttensixbh) && !defined(BHEMU_SFPU_H)
#define BHEMU_SFPU_H

extern volatile __UINT32_TYPE__ __instrn_buffer[];

namespace ckernel
{
constexpr inline volatile __UINT32_TYPE__ (&instrn_buffer)[] = __instrn_buffer;
}

#endif
