/* main.c: agentixd: options, environment, configuration file. */
#include "daemon/backends.h"
#include "daemon/daemon.h"

#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "base/fd.h"

enum {
    EXIT_USAGE = 2,
    EXIT_LOCKED = 75, /* another daemon runs; callers that just want one accept this */
    PRINT_MAX = 64 << 10,
};

/* The name under which unchanged programs start the daemon of agents-sandbox. */
#define AGBOX_NAME "agboxd"

static const char help[] =
    "usage: agentixd [options]\n"
    "\n"
    "Runs sandboxes: makes, stops, resumes and deletes them, and runs commands in them, for\n"
    "clients that connect to its socket. Without --foreground it goes into the background once it\n"
    "is ready. Sandboxes keep running when it exits; the next start takes them over.\n"
    "\n"
    "  --config FILE         configuration (default: agentix/config.yaml in XDG_CONFIG_HOME,\n"
    "                        ~/.config or /etc)\n"
    "  --backend NAME[:TARGET]\n"
    "                        what runs the sandboxes: native (the default) uses the Linux\n"
    "                        kernel directly, docker uses a Docker engine\n"
    "  --compat agbox        also serve clients of agents-sandbox, on their own socket\n"
    "  --foreground          stay in the foreground and log to stderr\n"
    "  --print-config        print the effective configuration with all its keys, and exit\n"
    "  --check-config        print what is wrong with the configuration, if anything, and exit\n"
    "  --help, --version\n"
    "\n"
    "Its socket is agentix/agentixd.sock in XDG_RUNTIME_DIR (root without it: /run), or\n"
    "AGENTIX_SOCKET.\n";

enum {
    OPT_CONFIG = 1000,
    OPT_BACKEND,
    OPT_COMPAT,
    OPT_FOREGROUND,
    OPT_PRINT_CONFIG,
    OPT_CHECK_CONFIG,
    OPT_HELP,
    OPT_VERSION,
};

static const struct option long_options[] = {
    { "config", required_argument, NULL, OPT_CONFIG },
    { "backend", required_argument, NULL, OPT_BACKEND },
    { "compat", required_argument, NULL, OPT_COMPAT },
    { "foreground", no_argument, NULL, OPT_FOREGROUND },
    { "print-config", no_argument, NULL, OPT_PRINT_CONFIG },
    { "check-config", no_argument, NULL, OPT_CHECK_CONFIG },
    { "help", no_argument, NULL, OPT_HELP },
    { "version", no_argument, NULL, OPT_VERSION },
    { NULL, 0, NULL, 0 },
};

struct options {
    const char *config, *backend, *compat;
    bool foreground, print_config, check_config;
};

struct program {
    struct options options;
    struct agx_config config;
    struct agx_file_layout layout;
    struct agx_file_layout_agbox agbox;
    struct agx_systemd systemd;
    struct agx_docker_env docker_env;
    struct agx_docker_setup docker;
    struct agx_native_setup native;
};

/* ---- options ---- */

static void set_option(struct options *o, int option, const char *text)
{
    switch (option) {
    case OPT_CONFIG:
        o->config = text;
        break;
    case OPT_BACKEND:
        o->backend = text;
        break;
    case OPT_COMPAT:
        o->compat = text;
        break;
    case OPT_FOREGROUND:
        o->foreground = true;
        break;
    case OPT_PRINT_CONFIG:
        o->print_config = true;
        break;
    default:
        o->check_config = true;
    }
}

/* 0: go on; else the exit code and one. */
static int read_options(struct options *o, int argc, char **argv)
{
    int c;

    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == OPT_HELP) {
            (void)fputs(help, stdout);
            return 1 + EXIT_SUCCESS;
        }
        if (c == OPT_VERSION) {
            (void)printf("agentixd %s\n", AGX_VERSION);
            return 1 + EXIT_SUCCESS;
        }
        if (c == '?')
            break;
        set_option(o, c, optarg);
    }
    if (c == -1 && optind == argc)
        return 0;
    if (c == -1)
        (void)fprintf(stderr, "agentixd: unexpected argument '%s'\n", argv[optind]);
    (void)fputs("agentixd: see agentixd --help\n", stderr);
    return 1 + EXIT_USAGE;
}

/* Started as agboxd: like it, takes no arguments and stays in the foreground. */
static int read_agbox_options(struct options *o, int argc)
{
    if (argc > 1) {
        (void)fputs(AGBOX_NAME ": does not accept CLI path overrides or any other argument\n",
                    stderr);
        return 1 + EXIT_USAGE;
    }
    o->compat = "agbox";
    o->foreground = true;
    return 0;
}

static bool is_named(const char *argv0, const char *name)
{
    const char *slash = argv0 ? strrchr(argv0, '/') : NULL;

    return argv0 && strcmp(slash ? slash + 1 : argv0, name) == 0;
}

/* ---- configuration ---- */

/* A file named on the command line must exist; the default file need not. */
static int read_config(struct program *p, struct agx_error **err)
{
    const char *path = p->options.config ? p->options.config : p->layout.config_file;
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_YAML_MAX);
    int r = agx_fd_read_file(AT_FDCWD, path, &text, err);

    if (r == -AGX_NOT_FOUND && !p->options.config) {
        *err = agx_error_free(*err);
        return 0;
    }
    if (r < 0)
        return agx_error_wrap(err, r, "read the configuration '%s'", path);
    r = agx_config_read(&p->config, agx_buf_peek(&text), path, err);
    return r;
}

static int configure(struct program *p, struct agx_error **err)
{
    int r = read_config(p, err);

    if (r == 0 && p->options.backend)
        r = agx_config_set(&p->config, "backend", p->options.backend, err);
    if (r == 0 && p->options.compat)
        r = agx_config_set(&p->config, "compat", p->options.compat, err);
    /* The daemon of agents-sandbox uses Docker; our own default needs only Linux. */
    if (r == 0 && !(p->config.backend && p->config.backend[0]))
        r = agx_config_set(&p->config, "backend", p->config.compat ? "docker" : "native", err);
    return r < 0 ? r : agx_config_check(&p->config, err);
}

static int print_config(const struct agx_config *c, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(PRINT_MAX);
    int r = agx_config_print(c, &text);

    if (r < 0)
        return agx_error_set(err, (enum agx_code) - r, "print the configuration");
    return agx_fd_write_all(STDOUT_FILENO, agx_buf_peek(&text), err);
}

/* The home of our user; service managers do not always set HOME. */
static const char *home_directory(void)
{
    const char *home = getenv("HOME");
    const struct passwd *user;

    if (home && home[0] == '/')
        return home;
    user = getpwuid(geteuid());
    return user && user->pw_dir && user->pw_dir[0] == '/' ? user->pw_dir : "/";
}

static struct agx_docker_env read_docker_env(void)
{
    return (struct agx_docker_env){
        .host = getenv("DOCKER_HOST"),
        .context = getenv("DOCKER_CONTEXT"),
        .config = getenv("DOCKER_CONFIG"),
        .cert_path = getenv("DOCKER_CERT_PATH"),
        .tls_verify = getenv("DOCKER_TLS_VERIFY"),
        .api_version = getenv("DOCKER_API_VERSION"),
        .home = home_directory(),
        .path = getenv("PATH"),
        .all = (const char *const *)environ,
    };
}

static struct agx_backend_config backend_config(const struct agx_config *c)
{
    const struct agx_backend_env env = { .home = home_directory(),
                                         .ssh_auth_sock = getenv("SSH_AUTH_SOCK"),
                                         .runtime_dir = getenv("XDG_RUNTIME_DIR") };

    return agx_backend_config_make(c, &env);
}

/* Paths, configuration, environment: checks everything that can fail before we touch files. */
static int main_prepare(struct program *p, struct agx_error **err)
{
    const struct agx_xdg x = {
        .runtime_dir = getenv("XDG_RUNTIME_DIR"),
        .data_home = getenv("XDG_DATA_HOME"),
        .config_home = getenv("XDG_CONFIG_HOME"),
        .home = getenv("HOME"),
        .socket = getenv("AGENTIX_SOCKET"),
        .uid = geteuid(),
    };
    int r = agx_file_layout_init(&p->layout, &x, err);

    p->docker_env = read_docker_env();
    if (r == 0)
        r = configure(p, err);
    if (r == 0 && p->config.compat)
        r = agx_file_layout_agbox_init(&p->agbox, &x, err);
    if (r == 0)
        r = agx_docker_setup_init(&p->docker, &p->config, &p->docker_env, err);
    if (r == 0)
        r = agx_native_setup_init(&p->native, &p->config, err);
    return r < 0 ? r : agx_systemd_init(&p->systemd, err);
}

/* ---- running ---- */

/* Fills descriptors 0 to 2, or the next opened file would become one of them. */
static void fill_standard_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

static int main_run(struct program *p, bool *ret_held, struct agx_error **err)
{
    struct agx_background background = AGX_BACKGROUND_INIT;
    const struct agx_backend_config backend = backend_config(&p->config);
    const struct agx_daemon_options o = {
        .config = &p->config,
        .layout = &p->layout,
        .agbox = p->config.compat ? &p->agbox : NULL,
        .systemd = &p->systemd,
        .backends = agx_daemon_backends,
        .backend = &backend,
        .docker = &p->docker,
        .docker_env = &p->docker_env,
        .native = &p->native,
        .background = &background,
        .home = home_directory(),
        .log_to_file = !p->options.foreground,
    };
    int r = 0;

    (void)umask(077);
    if (p->config.compat) {
        p->config.log.daemon = AGBOX_NAME;
        p->config.log.format = AGX_LOG_JSON;
    }
    agx_log_setup(&p->config.log);
    if (!p->options.foreground)
        r = agx_background_start(&background, err);
    return r < 0 ? r : agx_daemon_run(&o, ret_held, err);
}

static void program_done(struct program *p)
{
    agx_config_done(&p->config);
    agx_file_layout_done(&p->layout);
    agx_file_layout_agbox_done(&p->agbox);
    agx_systemd_done(&p->systemd);
    agx_docker_setup_done(&p->docker);
    agx_native_setup_done(&p->native);
}

static void main_complain(const char *name, const struct agx_error *err)
{
    char text[2048];

    (void)fprintf(stderr, "%s: %s\n", name, agx_error_format(err, text, sizeof(text)));
}

int main(int argc, char **argv)
{
    struct program p = { .config = AGX_CONFIG_INIT };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    bool as_agbox = argc > 0 && is_named(argv[0], AGBOX_NAME), held = false;
    const char *name = as_agbox ? AGBOX_NAME : "agentixd";
    int r, status = EXIT_SUCCESS;

    fill_standard_fds();
    r = as_agbox ? read_agbox_options(&p.options, argc) : read_options(&p.options, argc, argv);
    if (r > 0)
        return r - 1;
    r = main_prepare(&p, &err);
    if (r < 0)
        status = EXIT_USAGE;
    else if (p.options.print_config)
        r = print_config(&p.config, &err);
    else if (!p.options.check_config && ((r = agx_docker_setup_complete(&p.docker, &err)) < 0 ||
                                         (r = agx_native_setup_complete(&p.native, &err)) < 0))
        status = EXIT_FAILURE;
    else if (!p.options.check_config)
        r = main_run(&p, &held, &err);
    /* In the foreground the log has shown a failed start on the same stderr. */
    if (r < 0 && (status != EXIT_SUCCESS || !p.options.foreground))
        main_complain(name, err);
    if (r < 0 && status == EXIT_SUCCESS)
        status = held && !p.config.compat ? EXIT_LOCKED : EXIT_FAILURE;
    program_done(&p);
    return status;
}
