/*
 * bhemu.h: what a kernel author needs to write for the five RISC-V cores of a Blackhole Tensix tile.
 *
 * `bhemu cc` finds this header by itself and defines, for the core that the kernel is linked for:
 *
 *   BHEMU_CORE          0 B, 1 T0, 2 T1, 3 T2, 4 NC
 *   BHEMU_CORE_B ...    one of BHEMU_CORE_B, BHEMU_CORE_T0, BHEMU_CORE_T1, BHEMU_CORE_T2, BHEMU_CORE_NC
 *   BHEMU_THREAD        0, 1, 2 on T0, T1, T2: the Tensix thread that the core feeds
 *
 * <bhemu_instructions.h> (included here) has TT_OP_X, TT_X and TTI_X of every instruction, <bhemu_fields.h> the
 * configuration fields. Both are generated; `bhemu cc --print-header instructions` shows them.
 *
 * Functions exist on the cores that have the hardware: using a Tensix push on NC, or a semaphore window on B, does not
 * compile.
 */

#ifndef BHEMU_H
#define BHEMU_H

/* Cores, as BHEMU_CORE and the mailboxes number them */

#define BHEMU_B  0
#define BHEMU_T0 1
#define BHEMU_T1 2
#define BHEMU_T2 3
#define BHEMU_NC 4

/* Semaphores of the coprocessor by the use that the LLK makes of them. SEMINIT and SEMWAIT take masks. */

#define BHEMU_FPU_SFPU            0
#define BHEMU_MATH_PACK           1
#define BHEMU_UNPACK_TO_DEST      2
#define BHEMU_UNPACK_OPERAND_SYNC 3
#define BHEMU_PACK_DONE           4
#define BHEMU_UNPACK_SYNC         5
#define BHEMU_UNPACK_MATH_DONE    6
#define BHEMU_MATH_DONE           7
#define BHEMU_SEMAPHORE_MASK(semaphore) (1 << (semaphore))

/* Memory map of the tile, as a core sees it */

#define BHEMU_L1_SIZE          0x180000 /* L1 starts at 0 */
#define BHEMU_LOCAL_RAM        0xFFB00000
#define BHEMU_TDMA             0xFFB11000
#define BHEMU_CONTROL          0xFFB12000
#define BHEMU_PIC              0xFFB13000
#define BHEMU_NOC0             0xFFB20000
#define BHEMU_NOC1             0xFFB30000
#define BHEMU_OVERLAY          0xFFB40000 /* + 0x1000 * stream */
#define BHEMU_MOP_CONFIG       0xFFB80000 /* 9 words, T cores, write only */
#define BHEMU_DST              0xFFBD8000 /* T cores */
#define BHEMU_GPR              0xFFE00000 /* a T core's own 64; B: + 0x100 * thread */
#define BHEMU_PUSH_WINDOW      0xFFE40000 /* a T core's own thread; B: + 0x10000 * thread, behind the MOP expander */
#define BHEMU_PCBUF            0xFFE80000 /* B: + 0x10000 * thread */
#define BHEMU_TTSYNC           0xFFE80004 /* T cores */
#define BHEMU_MOPSYNC          0xFFE80008 /* T cores */
#define BHEMU_SEMAPHORES       0xFFE80020 /* T cores, + 4 * semaphore */
#define BHEMU_MAILBOX          0xFFEC0000 /* + 0x1000 * other core: 0 B, 1 T0, 2 T1, 3 T2 */
#define BHEMU_CONFIG           0xFFEF0000 /* + 4 * word; bank 1 at + 0x380, both at + 0x700, ThreadConfig at + 0xA80 */

/* Registers of the control block */

#define BHEMU_SOFT_RESET_0     0xFFB121B0 /* 1 = held: bit 11 B, 12 T0, 13 T1, 14 T2, 18 NC */
#define BHEMU_WALL_CLOCK_0     0xFFB121F0 /* low half; a load latches the high half */
#define BHEMU_WALL_CLOCK_1     0xFFB121F4 /* high half, live */
#define BHEMU_WALL_CLOCK_1_AT  0xFFB121F8 /* high half, latched */
#define BHEMU_DISABLE_RESET    0xFFB12224
#define BHEMU_T0_RESET_PC      0xFFB12228
#define BHEMU_T1_RESET_PC      0xFFB1222C
#define BHEMU_T2_RESET_PC      0xFFB12230
#define BHEMU_T_RESET_PC_OVERRIDE  0xFFB12234 /* bit i: Ti starts at its register */
#define BHEMU_NC_RESET_PC      0xFFB12238
#define BHEMU_NC_RESET_PC_OVERRIDE 0xFFB1223C

/* Config word whose store empties instruction caches: bit 0 B, 1 T0, 2 T1, 3 T2, 4 NC */
#define BHEMU_ICACHE_INVALIDATE 0xFFEF02E4

#include <bhemu_instructions.h>

#if !defined(__ASSEMBLER__)

#include <stdint.h>

#if defined(__cplusplus)
#define BHEMU_STATIC_ASSERT static_assert
extern "C" {
#else
#define BHEMU_STATIC_ASSERT _Static_assert
#endif

#define BHEMU_INLINE static inline __attribute__((always_inline, unused))

/* Places a variable in L1, where other cores, the coprocessor and the host see it: BHEMU_L1 uint32_t result; */
#define BHEMU_L1 __attribute__((section(".l1")))

/* Memory access of exactly one 32-bit load or store */

BHEMU_INLINE uint32_t bhemu_load(uint32_t address) { return *(volatile uint32_t *)address; }
BHEMU_INLINE void bhemu_store(uint32_t address, uint32_t value) { *(volatile uint32_t *)address = value; }

/* Waits for a loaded value: an instruction that needs it does not issue before it is there. */
BHEMU_INLINE void bhemu_need(uint32_t value) { __asm__ volatile("and zero, zero, %0" ::"r"(value) : "memory"); }

/* All earlier loads have their data and all earlier stores have left the store queue (T31). */
BHEMU_INLINE void bhemu_fence(void) { __asm__ volatile("fence" ::: "memory"); }

/* Stops this core; only a debugger or a soft reset moves it again (T9). */
BHEMU_INLINE void bhemu_halt(void) { __asm__ volatile("ebreak" ::: "memory"); }

BHEMU_INLINE uint64_t bhemu_wall_clock(void) {
    uint32_t low = bhemu_load(BHEMU_WALL_CLOCK_0);
    return ((uint64_t)bhemu_load(BHEMU_WALL_CLOCK_1_AT) << 32) | low;
}

BHEMU_INLINE void bhemu_wait(uint32_t clocks) {
    uint32_t start = bhemu_load(BHEMU_WALL_CLOCK_0);
    while (bhemu_load(BHEMU_WALL_CLOCK_0) - start < clocks) {
    }
}

/* Pushing instructions to the coprocessor */

#define BHEMU_FITS(operand, bits, instruction, name)                   \
    BHEMU_STATIC_ASSERT((((uint32_t)(operand)) >> (bits)) == 0,        \
                        "operand " name " of " instruction " takes " #bits " bits")

#if defined(BHEMU_CORE_NC)

extern void bhemu_no_push_on_nc(void) __attribute__((error("core NC cannot push Tensix instructions (T11)")));
#define BHEMU_TTI(word)  ((void)(word), bhemu_no_push_on_nc())
#define BHEMU_PUSH(word) ((void)(word), bhemu_no_push_on_nc())

#else

/* A constant word, as .ttinsn. T cores: to the own thread. B: to thread 0, behind its MOP expander (T11). */
#define BHEMU_TTI(word) __asm__ volatile(".ttinsn %0" ::"i"((uint32_t)(word)) : "memory")

/* Any word, as a store. */
#define BHEMU_PUSH(word) bhemu_store(BHEMU_PUSH_WINDOW, (uint32_t)(word))

/* The names that are short, unless something else has them. */
#if !defined(TTI)
#define TTI(word) BHEMU_TTI(word)
#endif
#if !defined(TT)
#define TT(word) BHEMU_PUSH(word)
#endif

#endif

#if defined(BHEMU_CORE_B)

/* Push to the replay expander of thread 0, 1 or 2; a MOP has no meaning here (K3). */
BHEMU_INLINE void bhemu_push_to(uint32_t thread, uint32_t word) {
    bhemu_store(BHEMU_PUSH_WINDOW + 0x10000 * thread, word);
}

BHEMU_INLINE volatile uint32_t *bhemu_gpr(uint32_t thread) {
    return (volatile uint32_t *)(BHEMU_GPR + 0x100 * thread);
}

#endif

#if defined(BHEMU_THREAD)

/* Waits until the own thread has no instruction in flight. The store keeps the order with earlier pushes (K18). */
BHEMU_INLINE void bhemu_tensix_sync(void) {
    bhemu_store(BHEMU_TTSYNC, 0);
    bhemu_need(bhemu_load(BHEMU_TTSYNC));
}

/* Waits until no MOP of the own thread is queued or being expanded (K18). */
BHEMU_INLINE void bhemu_mop_sync(void) {
    bhemu_store(BHEMU_MOPSYNC, 0);
    bhemu_need(bhemu_load(BHEMU_MOPSYNC));
}

/* The 64 general purpose registers of the own thread */
BHEMU_INLINE volatile uint32_t *bhemu_gpr(void) { return (volatile uint32_t *)BHEMU_GPR; }

/* Coprocessor semaphores 0-7 (K20). Initialise them with TTI_SEMINIT. */
BHEMU_INLINE uint32_t bhemu_semaphore_value(uint32_t semaphore) {
    return bhemu_load(BHEMU_SEMAPHORES + 4 * semaphore);
}
BHEMU_INLINE void bhemu_semaphore_post(uint32_t semaphore) { bhemu_store(BHEMU_SEMAPHORES + 4 * semaphore, 0); }
BHEMU_INLINE void bhemu_semaphore_get(uint32_t semaphore) { bhemu_store(BHEMU_SEMAPHORES + 4 * semaphore, 1); }

/* Waits until a semaphore is above 0, and takes 1 off; only one core may take from it. */
BHEMU_INLINE void bhemu_semaphore_take(uint32_t semaphore) {
    while (bhemu_semaphore_value(semaphore) == 0) {
    }
    bhemu_semaphore_get(semaphore);
}

#endif

#if !defined(BHEMU_CORE_NC)

/* Mailboxes between B, T0, T1 and T2; `core` is the other side: BHEMU_B, BHEMU_T0, ... (K14). NC has none. */
BHEMU_INLINE void bhemu_mailbox_send(uint32_t core, uint32_t word) { bhemu_store(BHEMU_MAILBOX + 0x1000 * core, word); }

/* Waits for a word. */
BHEMU_INLINE uint32_t bhemu_mailbox_receive(uint32_t core) { return bhemu_load(BHEMU_MAILBOX + 0x1000 * core); }

/* Whether a word waits; takes nothing. */
BHEMU_INLINE uint32_t bhemu_mailbox_ready(uint32_t core) { return bhemu_load(BHEMU_MAILBOX + 0x1000 * core + 4) & 1; }

/* Word of Config bank 0 or 1; words 180-223 are the same in both (K8, K9). */
BHEMU_INLINE volatile uint32_t *bhemu_config(uint32_t bank, uint32_t word) {
    return (volatile uint32_t *)(BHEMU_CONFIG + 0x380 * bank + 4 * word);
}

#endif

/* Symbols of the linker script and the start-up code */
extern uint32_t __bhemu_exit_code;         /* what main returned, in local RAM */
extern char __bhemu_halt[];                /* the ebreak after main */
extern char __bhemu_text_start[], __bhemu_text_end[];
extern char __bhemu_data_start[], __bhemu_data_end[], __bhemu_data_load[];
extern char __bhemu_bss_start[], __bhemu_bss_end[];
extern char __bhemu_stack_bottom[], __bhemu_stack_top[];
extern char __bhemu_l1_origin[], __bhemu_l1_end[]; /* what the kernel's file occupies in L1 */

#endif /* __ASSEMBLER__ */

#include <bhemu_noc.h>
#include <bhemu_buffers.h>

#if !defined(__ASSEMBLER__) && defined(__cplusplus)
}
#endif

#endif /* BHEMU_H */
