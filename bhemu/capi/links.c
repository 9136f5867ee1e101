/* Links between chips that fail. */

#include "simulator.h"

#include <stdio.h>
#include <unistd.h>

/* A word of one end of a link (ethernet/failures.py). */
#define AT_END(link, end, field) \
    (&FIELD(int64_t, instances[(link)->chip[end]].chip, CHIP_LINK_FAULTS + (field)))[(link)->channel[end]]

int link_fails(const struct link *link)
{
    return AT_END(link, 0, LINK_DOWN) || AT_END(link, 0, LINK_UNTIL) > FIELD(int64_t, instances[link->chip[0]].chip, CHIP_TIME) ||
           AT_END(link, 0, LINK_LOST) + AT_END(link, 1, LINK_LOST) > 0;
}

int simulator_some_link_fails(void)
{
    for (const struct link *link = machine_links; link->name; link++)
        if (link_fails(link))
            return 1;
    return 0;
}

/* A line for each link that fails. */
void simulator_say_links(void)
{
    for (const struct link *link = machine_links; link->name; link++) {
        if (!link_fails(link))
            continue;
        long long until = AT_END(link, 0, LINK_UNTIL), lost = AT_END(link, 0, LINK_LOST) + AT_END(link, 1, LINK_LOST);
        dprintf(STDOUT_FILENO, "[%lld] bhemu: link %s: ", (long long)simulator_time(), link->name);
        if (AT_END(link, 0, LINK_DOWN))
            dprintf(STDOUT_FILENO, LINK_DOWN_TEXT, (long long)AT_END(link, 0, LINK_CUT));
        else if (until > simulator_time())
            dprintf(STDOUT_FILENO, LINK_RETRAINS_TEXT, until);
        else
            dprintf(STDOUT_FILENO, LINK_UP_TEXT);
        if (lost > 0)
            dprintf(STDOUT_FILENO, LINK_LOST_TEXT, lost);
        dprintf(STDOUT_FILENO, "\n");
    }
}
