/* cmd_image.c: `agentix image`: what each of its commands is called and takes. */
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
      "make an image of an archive or a directory",
      "Makes an image of a file, of standard input (-), or of a directory, and prints its id. It "
      "may\n"
      "be what `docker save` writes, an OCI layout, or a root file system; files are tars, also "
      "in\n"
      "gzip, zstd or xz. Interrupted, it leaves nothing behind.\n"
      "\n"
      "  --name NAME          what the image is called (its archive may say that, too)\n"
      "  --json               the images as JSON\n",
      agx_image_import },
    { "list", "[--json]", "show the images",
      "Shows the images that the daemon has, the newest first, with a line for each name.\n"
      "\n"
      "  --json               as JSON\n",
      agx_image_list },
    { "inspect", "IMAGE [--json]", "show one image",
      "Shows what is known of an image, by its name or id, a line each.\n"
      "\n"
      "  --json               as JSON\n",
      agx_image_inspect },
    { "rm", "IMAGE [--json]", "remove an image, or one of its names",
      "Takes a name away from an image that has several. By its last name, or by its id, the "
      "image\n"
      "goes, with the layers that no other has. One that sandboxes use stays.\n"
      "\n"
      "  --json               what is gone, as JSON\n",
      agx_image_rm },
    { "prune", "[--json]", "remove the images that have no name",
      "Removes all images that have no name and that no sandbox uses.\n"
      "\n"
      "  --json               what is gone, as JSON\n",
      agx_image_prune },
    { NULL, NULL, NULL, NULL, NULL },
};

const struct agx_command agx_cmd_image = {
    .name = "image",
    .summary = "pull and import images, look at them and remove them",
    .subcommands = subcommands,
};
