/*
 * sfpi.h of bhemu: the names of the vector language, without the language.
 *
 * The vendor's header of this name needs the vendor's compiler, which keeps vector values in SFPU registers. A stock
 * compiler cannot, so every vector value here is an empty object and every operation on one is an error when code for
 * it is generated. Headers that merely mention vectors compile; kernels that use the SFPU with raw TTI_SFP... words
 * compile and work; the first vector operation that a kernel really executes is refused by name.
 *
 * The SFP..._MOD constants are operand values of the instructions and are used with raw words.
 */

#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#define sfpi_inline [[gnu::always_inline]] inline

namespace sfpi
{

[[gnu::error("this vector operation needs the vendor's SFPU compiler (sfpi)")]] extern void bhemu_sfpu_compiler_needed();

/* Control flow by lane flags: parses as ordinary control flow, and is refused through its condition. */
#define v_if(...)     if (::sfpi::bhemu_lanes(__VA_ARGS__))
#define v_elseif(...) else if (::sfpi::bhemu_lanes(__VA_ARGS__))
#define v_else        else
#define v_endif ;
#define v_and(...)    ((void)::sfpi::bhemu_lanes(__VA_ARGS__))
#define v_block
#define v_endblock ;

struct bhemu_vector_base
{
};

template <typename T>
inline constexpr bool bhemu_is_vector = std::is_base_of_v<bhemu_vector_base, std::remove_cvref_t<T>>;

template <typename T>
[[gnu::always_inline]] inline bool bhemu_lanes(const T &)
{
    bhemu_sfpu_compiler_needed();
    return false;
}

/* A vector value; Kind keeps the types apart. */
template <int Kind>
struct bhemu_vector : bhemu_vector_base
{
    [[gnu::always_inline]] constexpr bhemu_vector() {}

    [[gnu::always_inline]] bhemu_vector(const bhemu_vector &) : bhemu_vector_base()
    {
        bhemu_sfpu_compiler_needed();
    }

    template <typename... T>
        requires(sizeof...(T) > 0)
    [[gnu::always_inline]] bhemu_vector(const T &...)
    {
        bhemu_sfpu_compiler_needed();
    }

    [[gnu::always_inline]] bhemu_vector &operator=(const bhemu_vector &)
    {
        bhemu_sfpu_compiler_needed();
        return *this;
    }

    template <typename T>
    [[gnu::always_inline]] bhemu_vector &operator=(const T &)
    {
        bhemu_sfpu_compiler_needed();
        return *this;
    }

    [[gnu::always_inline]] explicit operator bool() const
    {
        bhemu_sfpu_compiler_needed();
        return false;
    }

    [[gnu::always_inline]] bhemu_vector get() const
    {
        return {0};
    }

    [[gnu::always_inline]] void in_use() const
    {
        bhemu_sfpu_compiler_needed();
    }

    template <typename... T>
    [[gnu::always_inline]] void set(const T &...)
    {
        bhemu_sfpu_compiler_needed();
    }

    template <auto... Parameters, typename... T>
    [[gnu::always_inline]] bhemu_vector mode(const T &...) const
    {
        return {0};
    }
};

using vFloat = bhemu_vector<0>;
using vInt   = bhemu_vector<1>;
using vUInt  = bhemu_vector<2>;
using vBool  = bhemu_vector<3>;
using vMag   = bhemu_vector<4>;
using vSMag  = bhemu_vector<5>;
using vSMag8 = bhemu_vector<6>;
using vSMag16 = bhemu_vector<7>;
using vUInt8  = bhemu_vector<8>;
using vUInt16 = bhemu_vector<9>;
using vFloat16a = bhemu_vector<10>;
using vFloat16b = bhemu_vector<11>;
using sFloat16a = bhemu_vector<12>;
using sFloat16b = bhemu_vector<13>;
using vLut16ss  = bhemu_vector<14>;
using vLut16ii  = bhemu_vector<15>;
using vLut8si   = bhemu_vector<16>;
using bhemu_any = bhemu_vector<99>;

#define BHEMU_BINARY(op)                                                         \
    template <typename A, typename B>                                            \
        requires(bhemu_is_vector<A> || bhemu_is_vector<B>)                       \
    [[gnu::always_inline]] inline auto operator op(const A &, const B &)         \
    {                                                                            \
        bhemu_sfpu_compiler_needed();                                            \
        return std::conditional_t<bhemu_is_vector<A>, A, B>();                   \
    }
#define BHEMU_COMPARE(op)                                                        \
    template <typename A, typename B>                                            \
        requires(bhemu_is_vector<A> || bhemu_is_vector<B>)                       \
    [[gnu::always_inline]] inline vBool operator op(const A &, const B &)        \
    {                                                                            \
        bhemu_sfpu_compiler_needed();                                            \
        return vBool();                                                          \
    }
#define BHEMU_ASSIGN(op)                                                         \
    template <typename A, typename B>                                            \
        requires(bhemu_is_vector<A>)                                             \
    [[gnu::always_inline]] inline A &operator op(A &a, const B &)                \
    {                                                                            \
        bhemu_sfpu_compiler_needed();                                            \
        return a;                                                                \
    }
#define BHEMU_UNARY(op)                                                          \
    template <typename A>                                                        \
        requires(bhemu_is_vector<A>)                                             \
    [[gnu::always_inline]] inline A operator op(const A &)                       \
    {                                                                            \
        bhemu_sfpu_compiler_needed();                                            \
        return A();                                                              \
    }

BHEMU_BINARY(+)
BHEMU_BINARY(-)
BHEMU_BINARY(*)
BHEMU_BINARY(/)
BHEMU_BINARY(&)
BHEMU_BINARY(|)
BHEMU_BINARY(^)
BHEMU_BINARY(<<)
BHEMU_BINARY(>>)
BHEMU_COMPARE(==)
BHEMU_COMPARE(!=)
BHEMU_COMPARE(<)
BHEMU_COMPARE(<=)
BHEMU_COMPARE(>)
BHEMU_COMPARE(>=)
BHEMU_COMPARE(&&)
BHEMU_COMPARE(||)
BHEMU_ASSIGN(+=)
BHEMU_ASSIGN(-=)
BHEMU_ASSIGN(*=)
BHEMU_ASSIGN(&=)
BHEMU_ASSIGN(|=)
BHEMU_ASSIGN(^=)
BHEMU_ASSIGN(<<=)
BHEMU_ASSIGN(>>=)
BHEMU_UNARY(-)
BHEMU_UNARY(~)
BHEMU_UNARY(!)
BHEMU_UNARY(++)
BHEMU_UNARY(--)

#undef BHEMU_BINARY
#undef BHEMU_COMPARE
#undef BHEMU_ASSIGN
#undef BHEMU_UNARY

/* Dst and the LRegs as arrays of vectors. */
struct bhemu_registers
{
    template <typename T>
    [[gnu::always_inline]] bhemu_any operator[](const T &) const
    {
        bhemu_sfpu_compiler_needed();
        return bhemu_any();
    }

    template <typename... T>
    [[gnu::always_inline]] void operator++(T...) const
    {
        bhemu_sfpu_compiler_needed();
    }

    template <typename T>
    [[gnu::always_inline]] void operator+=(const T &) const
    {
        bhemu_sfpu_compiler_needed();
    }
};

inline constexpr bhemu_registers dst_reg{};
inline constexpr bhemu_registers l_reg{};

/* Keeps vector registers free in the vendor's compiler. */
struct lreg_pressure
{
};

/* Constants, and the vectors that a kernel programs once */
inline constinit bhemu_vector<0> vConst0, vConst1, vConstNeg1;
inline constinit bhemu_vector<0> vConstFloatPrgm0, vConstFloatPrgm1, vConstFloatPrgm2;
inline constinit bhemu_vector<1> vConstIntPrgm0, vConstIntPrgm1, vConstIntPrgm2, vConstTileId;

/* Modes of operations: names to parse, without values */
enum class LRegs { LReg0, LReg1, LReg2, LReg3, LReg4, LReg5, LReg6, LReg7 };
enum class DataLayout { Default, FSrcB, F16a, F16b, F32, I32, SM32, M32, U16, U32, I8, U8 };
enum class RoundMode { Nearest, NearestAway, NearestStochastic };
enum class ExponentMode { Unbiased, Biased };
enum class MantissaMode { Default, ImplicitOne };
enum class ShiftMode { Logical, Arithmetic };
enum class LutSign { Retain, Update };
enum class FractionalHalf { Low, High };

#define BHEMU_FUNCTION(name)                                                     \
    template <typename... Types, typename... A>                                  \
    [[gnu::always_inline]] inline bhemu_any name(const A &...)                   \
    {                                                                            \
        bhemu_sfpu_compiler_needed();                                            \
        return bhemu_any();                                                      \
    }

BHEMU_FUNCTION(abs)
BHEMU_FUNCTION(addexp)
BHEMU_FUNCTION(approx_recip)
BHEMU_FUNCTION(clamp)
BHEMU_FUNCTION(copysgn)
BHEMU_FUNCTION(exexp)
BHEMU_FUNCTION(exman)
BHEMU_FUNCTION(exman9)
BHEMU_FUNCTION(fractional_mul)
BHEMU_FUNCTION(is_finite)
BHEMU_FUNCTION(is_inf)
BHEMU_FUNCTION(is_nan)
BHEMU_FUNCTION(is_neg)
BHEMU_FUNCTION(is_pos)
BHEMU_FUNCTION(lut)
BHEMU_FUNCTION(max)
BHEMU_FUNCTION(min)
BHEMU_FUNCTION(nearby)
BHEMU_FUNCTION(setexp)
BHEMU_FUNCTION(setman)
BHEMU_FUNCTION(setsgn)
BHEMU_FUNCTION(setsgn2)
BHEMU_FUNCTION(shft)
BHEMU_FUNCTION(subvec_shflror1)
BHEMU_FUNCTION(subvec_transp)
BHEMU_FUNCTION(symmetric_clamp)

#undef BHEMU_FUNCTION

struct bhemu_pair
{
    bhemu_any low, high;
};

template <typename... A>
[[gnu::always_inline]] inline bhemu_pair min_max(const A &...)
{
    bhemu_sfpu_compiler_needed();
    return bhemu_pair();
}

template <typename... A>
[[gnu::always_inline]] inline bhemu_pair vec_min_max(const A &...)
{
    bhemu_sfpu_compiler_needed();
    return bhemu_pair();
}

template <typename To, typename... A>
[[gnu::always_inline]] inline To as(const A &...)
{
    bhemu_sfpu_compiler_needed();
    return To();
}

template <typename To, typename... A>
[[gnu::always_inline]] inline To convert(const A &...)
{
    bhemu_sfpu_compiler_needed();
    return To();
}

/* Operand values of SFP... instructions (V7-V19) */

inline constexpr unsigned SFP_DESTREG_STRIDE = 2;

inline constexpr unsigned SFPLOAD_MOD0_FMT_SRCB  = 0;
inline constexpr unsigned SFPLOAD_MOD0_FMT_FP16A = 1;
inline constexpr unsigned SFPLOAD_MOD0_FMT_FP16B = 2;
inline constexpr unsigned SFPLOAD_MOD0_FMT_FP32  = 3;
inline constexpr unsigned SFPLOAD_MOD0_FMT_LO16  = 9;

inline constexpr unsigned SFPSTORE_MOD0_FMT_SRCB  = 0;
inline constexpr unsigned SFPSTORE_MOD0_FMT_FP16A = 1;
inline constexpr unsigned SFPSTORE_MOD0_FMT_FP16B = 2;
inline constexpr unsigned SFPSTORE_MOD0_FMT_FP32  = 3;
inline constexpr unsigned SFPSTORE_MOD0_FMT_LO16  = 9;

inline constexpr unsigned SFPLOADI_MOD0_FLOATB = 0;
inline constexpr unsigned SFPLOADI_MOD0_FLOATA = 1;
inline constexpr unsigned SFPLOADI_MOD0_USHORT = 2;
inline constexpr unsigned SFPLOADI_MOD0_SHORT  = 4;
inline constexpr unsigned SFPLOADI_MOD0_UPPER  = 8;
inline constexpr unsigned SFPLOADI_MOD0_LOWER  = 10;

inline constexpr unsigned SFPMAD_MOD1_OFFSET_NONE = 0;

inline constexpr unsigned SFPMUL24_MOD1_LOWER = 0;
inline constexpr unsigned SFPMUL24_MOD1_UPPER = 1;

inline constexpr unsigned SFPARECIP_MOD1_RECIP = 0;

inline constexpr unsigned SFPIADD_MOD1_ARG_LREG_DST        = 0;
inline constexpr unsigned SFPIADD_MOD1_ARG_IMM             = 1;
inline constexpr unsigned SFPIADD_MOD1_ARG_2SCOMP_LREG_DST = 2;
inline constexpr unsigned SFPIADD_MOD1_CC_LT0              = 0;
inline constexpr unsigned SFPIADD_MOD1_CC_NONE             = 4;
inline constexpr unsigned SFPIADD_MOD1_CC_GTE0             = 8;

inline constexpr unsigned SFPSETCC_MOD1_LREG_LT0  = 0;
inline constexpr unsigned SFPSETCC_MOD1_IMM_BIT0  = 1;
inline constexpr unsigned SFPSETCC_MOD1_LREG_NE0  = 2;
inline constexpr unsigned SFPSETCC_MOD1_LREG_GTE0 = 4;
inline constexpr unsigned SFPSETCC_MOD1_LREG_EQ0  = 6;

inline constexpr unsigned SFPENCC_IMM12_BOTH = 3;
inline constexpr unsigned SFPENCC_MOD1_EU_R1 = 0;
inline constexpr unsigned SFPENCC_MOD1_EI_RI = 10;

inline constexpr unsigned SFPEXEXP_MOD1_SET_CC_SGN_EXP  = 2;
inline constexpr unsigned SFPEXEXP_MOD1_SET_CC_COMP_EXP = 8;
inline constexpr unsigned SFPEXMAN_MOD1_PAD9            = 1;
inline constexpr unsigned SFPLZ_MOD1_CC_NE0             = 2;
inline constexpr unsigned SFPABS_MOD1_INT               = 0;
inline constexpr unsigned SFPABS_MOD1_FLOAT             = 1;

inline constexpr unsigned SFPSHFT2_MOD1_SUBVEC_SHFLROR1 = 3;
inline constexpr unsigned SFPSHFT2_MOD1_SUBVEC_SHFLSHR1 = 4;
inline constexpr unsigned SFPSHFT2_MOD1_SHFT_LREG       = 5;
inline constexpr unsigned SFPSHFT2_MOD1_SHFT_IMM        = 6;

inline constexpr unsigned SFPSWAP_MOD1_SWAP        = 0;
inline constexpr unsigned SFPSWAP_MOD1_VEC_MIN_MAX = 1;

inline constexpr unsigned SFPCAST_MOD1_SM32_TO_FP32_RNE  = 0;
inline constexpr unsigned SFPCAST_MOD1_INT32_TO_FP32_RNE = 0;

inline constexpr unsigned SFPSTOCHRND_RND_EVEN           = 0;
inline constexpr unsigned SFPSTOCHRND_MOD1_FP32_TO_FP16A = 0;
inline constexpr unsigned SFPSTOCHRND_MOD1_FP32_TO_FP16B = 1;
inline constexpr unsigned SFPSTOCHRND_MOD1_FP32_TO_UINT8 = 2;
inline constexpr unsigned SFPSTOCHRND_MOD1_FP32_TO_INT8  = 3;
inline constexpr unsigned SFPSTOCHRND_MOD1_FP32_TO_UINT16 = 6;
inline constexpr unsigned SFPSTOCHRND_MOD1_FP32_TO_INT16  = 7;

} // namespace sfpi

/* The vendor compiler's builtins that headers call by name. */
#define BHEMU_BUILTIN(name)                                                      \
    template <typename... A>                                                     \
    [[gnu::always_inline]] inline sfpi::bhemu_any name(const A &...)             \
    {                                                                            \
        sfpi::bhemu_sfpu_compiler_needed();                                      \
        return sfpi::bhemu_any();                                                \
    }

BHEMU_BUILTIN(__builtin_rvtt_sfpmad)
BHEMU_BUILTIN(__builtin_rvtt_sfpgt)

#undef BHEMU_BUILTIN
