/* A program with mailboxes and a watcher as tt-metal's firmware has them, of a shape of its own; FAIL is what goes wrong. */

#include <stdint.h>

enum { NOTHING, ASSERTS, SANITIZES, TRAPS };

enum debug_assert_type_t { DebugAssertOK = 2, DebugAssertTripped = 3, DebugAssertOther = 8 };
enum debug_sanitize_noc_return_code_enum { DebugSanitizeOK = 2, DebugSanitizeNocAlignment = 9 };

struct launch_msg_t {
    uint8_t content[144];
};
typedef struct {
    volatile uint8_t letters[4];
} debug_waypoint_msg_t;
struct debug_sanitize_addr_msg_t {
    volatile uint32_t len, l1_addr;
    volatile uint64_t noc_addr;
    volatile uint16_t return_code, which_risc;
    volatile uint8_t is_write, is_multicast;
};
struct watcher_msg_t {
    volatile uint32_t enable;
    struct {
        volatile uint8_t tripped, which;
        volatile uint16_t line_num;
    } assert_status;
    struct debug_sanitize_addr_msg_t sanitize[2];
    debug_waypoint_msg_t debug_waypoint[5];
};
struct mailboxes_t {
    uint32_t head[2];
    struct launch_msg_t launch[8];
    uint8_t room[0x60]; /* go messages are here */
    struct watcher_msg_t watcher;
};

#define MAILBOXES ((struct mailboxes_t *)(0x70 - 8))
#define THIS_CORE 0

static inline void assert_and_hang(uint16_t line, enum debug_assert_type_t type) {
    MAILBOXES->watcher.assert_status.line_num = line;
    MAILBOXES->watcher.assert_status.which = THIS_CORE;
    MAILBOXES->watcher.assert_status.tripped = type;
    for (;;) {
    }
}
#define ASSERT(condition) ((condition) ? (void)0 : assert_and_hang(__LINE__, DebugAssertTripped))

__attribute__((noinline)) static void report_and_hang(uint32_t size, enum debug_sanitize_noc_return_code_enum code) {
    struct debug_sanitize_addr_msg_t *found = &MAILBOXES->watcher.sanitize[1];
    found->noc_addr = 0x10000004ull | (uint64_t)(3 | 7 << 6) << 36;
    found->l1_addr = 0x20000;
    found->len = size;
    found->is_write = 1;
    found->which_risc = THIS_CORE;
    found->return_code = code;
    for (;;) {
    }
}

__attribute__((always_inline)) static inline void write(uint32_t size) {
    if (size % 16) {
        report_and_hang(size, DebugSanitizeNocAlignment);
    }
}

__attribute__((always_inline)) static inline void lightweight_assert_trap(void) { __asm__ volatile("ebreak"); }

__attribute__((noinline)) static void work(uint32_t size) {
    write(16); /* is all right */
    write(size);
}

int main(void) {
    volatile uint32_t fail = FAIL;
    MAILBOXES->watcher.assert_status.tripped = DebugAssertOK;
    MAILBOXES->watcher.sanitize[0].return_code = MAILBOXES->watcher.sanitize[1].return_code = DebugSanitizeOK;
    MAILBOXES->watcher.debug_waypoint[THIS_CORE].letters[0] = 'G';
    MAILBOXES->watcher.debug_waypoint[THIS_CORE].letters[1] = 'O';
    ASSERT(fail != ASSERTS);
    work(fail == SANITIZES ? 20 : 32);
    if (fail == TRAPS) {
        lightweight_assert_trap();
    }
    for (;;) {
    }
}

__attribute__((section(".begin"), naked, used)) void begin(void) {
    __asm__ volatile("li sp, 0xffb01ff0\n j main");
}
