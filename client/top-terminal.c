/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals only set flags; they are let in nowhere but in ppoll(), so none is missed between a look at a flag and the wait. */

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>

#include "client/top-terminal.h"

static struct termios terminal_before;
static sigset_t mask_before;
static bool has_terminal, has_signals;
static volatile sig_atomic_t got_quit, got_stop, got_resize;

static void on_signal(int n) {
        if (n == SIGTSTP)
                got_stop = 1;
        else if (n == SIGWINCH)
                got_resize = 1;
        else
                got_quit = 1;
}

static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };

static void catch_signals(void) {
        struct sigaction action = { .sa_handler = on_signal };
        sigset_t mask;

        if (has_signals)
                return;
        (void) sigemptyset(&mask);
        for (size_t i = 0; i < ELEMENTSOF(caught); i++)
                (void) sigaddset(&mask, caught[i]);
        (void) sigprocmask(SIG_BLOCK, &mask, &mask_before);
        for (size_t i = 0; i < ELEMENTSOF(caught); i++)
                (void) sigaction(caught[i], &action, NULL);
        has_signals = true;
}

static void put(const char *sequence) {
        (void) fflush(stdout);
        (void) !write(STDOUT_FILENO, sequence, strlen(sequence));
}

static void take_terminal(void) {
        struct termios raw = terminal_before;

        raw.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        (void) tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        put("\033[?1049h\033[?25l\033[H\033[2J"); /* the other screen, no cursor, empty */
}

static void give_terminal(void) {
        put("\033[0m\033[?25h\033[?1049l");
        (void) tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

int terminal_enter(void) {
        if (tcgetattr(STDIN_FILENO, &terminal_before) < 0)
                return -errno;
        catch_signals();
        take_terminal();
        has_terminal = true;
        (void) atexit(terminal_leave);
        return 0;
}

void terminal_leave(void) {
        if (has_terminal)
                give_terminal();
        has_terminal = false;
}

void terminal_size(size_t *ret_width, size_t *ret_height) {
        struct winsize size = {};

        *ret_width = 80;
        *ret_height = 24;
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
                *ret_width = size.ws_col;
                *ret_height = size.ws_row;
        }
}

/* Ctrl-Z: as if it had never been caught. */
static void stop_here(void) {
        struct sigaction usual = { .sa_handler = SIG_DFL }, ours = { .sa_handler = on_signal };
        sigset_t mask;

        if (has_terminal)
                give_terminal();
        (void) sigaction(SIGTSTP, &usual, NULL);
        (void) raise(SIGTSTP);
        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTSTP);
        (void) sigprocmask(SIG_UNBLOCK, &mask, NULL); /* stops in here, goes on with SIGCONT */
        (void) sigprocmask(SIG_BLOCK, &mask, NULL);
        (void) sigaction(SIGTSTP, &ours, NULL);
        if (has_terminal)
                take_terminal();
}

/* The rest of an escape sequence has come with its first byte; a lone ESC has none. */
static int read_sequence(void) {
        static const struct {
                const char *sequence;
                Key key;
        } sequences[] = {
                { "[A", KEY_UP }, { "[B", KEY_DOWN }, { "OA", KEY_UP }, { "OB", KEY_DOWN }, { "[5~", KEY_PAGE_UP }, { "[6~", KEY_PAGE_DOWN },
                { "[H", KEY_HOME }, { "[F", KEY_END }, { "[1~", KEY_HOME }, { "[4~", KEY_END },
        };
        char text[8];
        ssize_t n = read(STDIN_FILENO, text, sizeof(text) - 1);

        if (n <= 0)
                return KEY_ESCAPE;
        text[n] = 0;
        for (size_t i = 0; i < ELEMENTSOF(sequences); i++)
                if (startswith(text, sequences[i].sequence))
                        return (int) sequences[i].key;
        return KEY_NONE;
}

int terminal_wait(uint64_t usec) {
        struct timespec timeout = { .tv_sec = (time_t) (usec / USEC_PER_SEC), .tv_nsec = (long) (usec % USEC_PER_SEC * NSEC_PER_USEC) };
        struct pollfd fd = { .fd = STDIN_FILENO, .events = POLLIN };
        unsigned char byte;
        int r;

        r = ppoll(&fd, 1, &timeout, &mask_before);
        if (got_quit)
                return KEY_QUIT;
        if (got_stop) {
                got_stop = 0;
                stop_here();
                return KEY_RESIZE;
        }
        if (got_resize) {
                got_resize = 0;
                return KEY_RESIZE;
        }
        if (r <= 0)
                return KEY_NONE;
        if (fd.revents & (POLLHUP | POLLERR) || read(STDIN_FILENO, &byte, 1) != 1)
                return KEY_QUIT;
        switch (byte) {
        case 033:
                return read_sequence();
        case '\r': case '\n':
                return KEY_ENTER;
        case 0x7f: case '\b':
                return KEY_BACKSPACE;
        default:
                return byte;
        }
}

bool terminal_sleep(uint64_t usec) {
        struct timespec timeout = { .tv_sec = (time_t) (usec / USEC_PER_SEC), .tv_nsec = (long) (usec % USEC_PER_SEC * NSEC_PER_USEC) };

        catch_signals();
        (void) ppoll(NULL, 0, &timeout, &mask_before);
        if (got_stop) {
                got_stop = 0;
                stop_here();
        }
        return got_quit;
}
