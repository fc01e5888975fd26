/* SPDX-License-Identifier: MIT
 * For shell tests: a terminal in which a program runs, and its screen.
 * terminal COLUMNS [-t TEXT KEYS] [-w TEXT COLUMNS] [-s TEXT SIGNAL] PROGRAM [ARGUMENT...]
 * -t: types KEYS ("^C" is one) as soon as TEXT was written; -w: the window gets another width; -s: the program gets
 * the signal of that number. Each happens once.
 * Prints each text that the program overwrote ("over: ..."), then the screen at the end, a line that was broken at
 * the right edge in one piece ("line: ..."), the last one even if it is empty; escape sequences are counted
 * ("escapes: N"). The exit code is the program's, 128 + N for a signal N, 99 if there is no terminal to be had. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { ROWS = 2000, WIDEST = 300, TAIL = 4096 };

struct action {
    const char *text; /* NULL = done */
    char what;        /* the option */
    const char *value;
};

/* Lines never leave it at the top: it is as high as a test needs. */
struct screen {
    char cells[ROWS][WIDEST + 1];
    int broken[ROWS]; /* the line goes on in the next row */
    int columns, row, column, escapes;
    int sequence; /* within an escape sequence */
    int returned; /* to the first column, and nothing was written since */
};

static int fail(const char *what)
{
    fprintf(stderr, "terminal: %s: %s\n", what, strerror(errno));
    return 99;
}

/* ---- the screen ---- */

static const char *row_text(const struct screen *s, int row)
{
    static char text[WIDEST + 1];
    size_t n = strlen(s->cells[row]);

    while (!s->broken[row] && n > 0 && s->cells[row][n - 1] == ' ')
        n--;
    memcpy(text, s->cells[row], n);
    text[n] = '\0';
    return text;
}

static void next_row(struct screen *s)
{
    if (s->row + 1 < ROWS)
        s->row++;
}

static void put_cell(struct screen *s, char c)
{
    char *cells;

    if (s->returned && *row_text(s, s->row))
        printf("over: %s\n", row_text(s, s->row));
    s->returned = 0;
    if (s->column ==
        s->columns) { /* as terminals do: the edge is crossed by what comes behind it */
        s->broken[s->row] = 1;
        next_row(s);
        s->column = 0;
    }
    cells = s->cells[s->row];
    const size_t n = strlen(cells);
    if (n < (size_t)s->column + 1) {
        memset(cells + n, ' ', (size_t)s->column + 1 - n);
        cells[s->column + 1] = '\0';
    }
    cells[s->column++] = c;
}

static void put(struct screen *s, char c)
{
    if (s->sequence) { /* CSI: up to the first letter */
        s->sequence = !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
    } else if (c == '\033') {
        s->sequence = 1;
        s->escapes++;
    } else if (c == '\r') {
        s->column = 0;
        s->returned = 1;
    } else if (c == '\n') {
        s->returned = 0;
        next_row(s);
    } else if ((unsigned char)c >= ' ') {
        put_cell(s, (unsigned char)c < 0x7f ? c : '?'); /* sample texts may be any bytes */
    }
}

static void print(const struct screen *s)
{
    for (int row = 0; row <= s->row; row++)
        printf("%s%s%s", row == 0 || !s->broken[row - 1] ? "line: " : "", row_text(s, row),
               s->broken[row] ? "" : "\n");
    printf("escapes: %d\n", s->escapes);
}

/* ---- the terminal ---- */

static void resize(int terminal, struct screen *s, int columns)
{
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};

    s->columns = columns;
    if (strlen(s->cells[s->row]) > (size_t)columns) /* what no longer has a place is cut off */
        s->cells[s->row][columns] = '\0';
    if (s->column > columns)
        s->column = columns;
    ioctl(terminal, TIOCSWINSZ, &size);
}

static void run(const char *name, char **program)
{
    struct termios modes;

    setsid();
    const int side = open(name, O_RDWR);
    if (side < 0)
        _exit(99);
    ioctl(side, TIOCSCTTY, 0);
    /* Ctrl-C throws away what was written and not read yet; a test must see it */
    if (tcgetattr(side, &modes) == 0) {
        modes.c_lflag |= NOFLSH;
        tcsetattr(side, TCSANOW, &modes);
    }
    for (int fd = 0; fd < 3; fd++)
        dup2(side, fd);
    if (side > 2)
        close(side);
    /* the test harness may have told its children to ignore it */
    signal(SIGINT, SIG_DFL);
    execvp(program[0], program);
    _exit(127);
}

static void type(int terminal, const char *keys)
{
    for (; *keys; keys++) {
        const int control = keys[0] == '^' && keys[1];
        const char c = control ? (char)(keys[1] & 0x1f) : keys[0];
        keys += control;
        if (write(terminal, &c, 1) != 1)
            return;
    }
}

/* While the program stands still: what it wrote for the old width is shown in that. */
static void resize_between(int terminal, pid_t child, struct screen *s, int columns)
{
    struct pollfd ready = {.fd = terminal, .events = POLLIN};
    char c;

    kill(child, SIGSTOP);
    waitpid(child, NULL, WUNTRACED);
    while (poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) && read(terminal, &c, 1) == 1)
        put(s, c);
    resize(terminal, s, columns);
    kill(child, SIGCONT);
}

static void act(int terminal, pid_t child, struct screen *s, struct action *actions,
                const char *written)
{
    for (struct action *action = actions; action->what; action++) {
        if (!action->text || !strstr(written, action->text))
            continue;
        action->text = NULL;
        if (action->what == 't')
            type(terminal, action->value);
        else if (action->what == 'w')
            resize_between(terminal, child, s, atoi(action->value));
        else
            kill(child, atoi(action->value));
    }
}

/* Until the last process that has the terminal is gone. */
static void watch(int terminal, pid_t child, struct screen *s, struct action *actions)
{
    static char tail[TAIL + 1]; /* what was written last, to be searched */
    size_t held = 0;
    char c;

    while (read(terminal, &c, 1) == 1) {
        if (held == TAIL) {
            memmove(tail, tail + TAIL / 2, TAIL / 2);
            held = TAIL / 2;
        }
        tail[held++] = c;
        tail[held] = '\0';
        put(s, c);
        act(terminal, child, s, actions, tail);
    }
}

int main(int argc, char **argv)
{
    static struct screen screen;
    struct action actions[9] = {{NULL, 0, NULL}};
    int at = 2, n = 0, status = 0;
    const int columns = argc > 2 ? atoi(argv[1]) : 0;

    for (; at + 3 < argc && n < 8 && argv[at][0] == '-'; at += 3)
        actions[n++] = (struct action){argv[at + 1], argv[at][1], argv[at + 2]};
    if (columns < 1 || columns > WIDEST || at >= argc) {
        fputs("terminal COLUMNS [-t TEXT KEYS] [-w TEXT COLUMNS] [-s TEXT SIGNAL] PROGRAM...\n",
              stderr);
        return 99;
    }
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        return fail("no pseudo-terminal");
    const char *name = ptsname(terminal);
    resize(terminal, &screen, columns);
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0)
        return fail("fork");
    if (child == 0)
        run(name, argv + at);
    watch(terminal, child, &screen, actions);
    waitpid(child, &status, 0);
    print(&screen);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
