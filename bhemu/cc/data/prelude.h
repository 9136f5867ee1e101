/* Included before every source: what the vendor's assembler has and GNU as has not. */

#if defined(__ASSEMBLER__)

/* .ttinsn WORD: push WORD to the coprocessor. The instruction stream carries it rotated left by two (T10), so that the
 * low two bits are not a RISC-V encoding; words from 0xC0000000 on have none. */
.macro .ttinsn word:vararg
  .if ((((\word) >> 30) & 3) == 3)
    .error "bhemu: .ttinsn takes words below 0xC0000000"
  .endif
  .4byte ((((\word) << 2) | (((\word) >> 30) & 3)) & 0xFFFFFFFF)
.endm

#else

/* Once in each assembly: link-time optimisation puts several sources into one. */
__asm__(
    ".ifndef __bhemu_ttinsn\n"
    ".set __bhemu_ttinsn, 1\n"
    ".macro .ttinsn word:vararg\n"
    "  .if ((((\\word) >> 30) & 3) == 3)\n"
    "    .error \"bhemu: .ttinsn takes words below 0xC0000000\"\n"
    "  .endif\n"
    "  .4byte ((((\\word) << 2) | (((\\word) >> 30) & 3)) & 0xFFFFFFFF)\n"
    ".endm\n"
    ".endif\n");

#if defined(__cplusplus) && defined(TENSIX_FIRMWARE) && __GNUC__ < 13

/* LLK headers write static_assert(false, ...) into branches of templates that are never taken. C++23 allows that; a
 * compiler before it judges the condition at once, unless the condition depends on the template, as this does. */
#define static_assert(...) static_assert(sizeof(__PRETTY_FUNCTION__) == 0 || __VA_ARGS__)

#endif

#endif
