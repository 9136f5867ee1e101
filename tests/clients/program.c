__asm__(".section .init,\"ax\"\n"
        ".globl _start\n"
        "_start: li sp, 0xffb01ff0\n"
        "        j main\n"
        ".text\n");

static volatile unsigned *const mailbox = (volatile unsigned *)0x20000;

__attribute__((noinline)) void count(unsigned n)
{
    mailbox[0] = n;
    for (;;)
        mailbox[1] = mailbox[1] + 1;
}

__attribute__((noinline)) void outer(unsigned n)
{
    count(n + 1);
}

int main(void)
{
    outer(0x1233);
    return 0;
}
