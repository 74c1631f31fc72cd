/* cmd_image.c: `agentix image`: the table of its subcommands. */
#include "cli/image_commands.h"

#include "base/banned.h"

static const struct agx_subcommand subcommands[] = {
    { "pull", "IMAGE [--json]", "fetch an image from its registry and print its id",
      "Asks the registry of an image and fetches what is not here. Credentials are those of "
      "`docker\n"
      "login`.\n"
      "\n"
      "  IMAGE                python:3.13-slim, registry:5000/team/tool@sha256:...; or\n"
      "                       docker-daemon:NAME, which takes it from a Docker Engine on this "
      "host\n"
      "  --json               the image as JSON\n",
      agx_image_pull },
    { "import", "FILE|DIRECTORY|- [--name NAME] [--json]",
      "make an image from an archive or a directory",
      "Makes an image from a file, standard input (-) or a directory, and prints its id. It "
      "may\n"
      "be what `docker save` writes, an OCI layout, or a root file system; files are tars, also "
      "in\n"
      "gzip, zstd or xz. Interrupted, it leaves nothing behind.\n"
      "\n"
      "  --name NAME          the image's name (its archive may have one, too)\n"
      "  --json               the images as JSON\n",
      agx_image_import },
    { "list", "[--json]", "show the images",
      "Shows the daemon's images, newest first, with a line for each name.\n"
      "\n"
      "  --json               as JSON\n",
      agx_image_list },
    { "inspect", "IMAGE [--json]", "show one image",
      "Shows the fields of an image, given by name or id, one per line.\n"
      "\n"
      "  --json               as JSON\n",
      agx_image_inspect },
    { "rm", "IMAGE [--json]", "remove an image, or one of its names",
      "Removes a name from an image that has several. With its last name, or its id, the "
      "image\n"
      "is removed, with the layers that no other uses. An image in use stays.\n"
      "\n"
      "  --json               what is gone, as JSON\n",
      agx_image_rm },
    { "prune", "[--json]", "remove the images without a name",
      "Removes all images that have no name and are not used by a sandbox.\n"
      "\n"
      "  --json               what is gone, as JSON\n",
      agx_image_prune },
    { NULL, NULL, NULL, NULL, NULL },
};

const struct agx_command agx_cmd_image = {
    .name = "image",
    .summary = "pull, import, inspect and remove images",
    .subcommands = subcommands,
};
