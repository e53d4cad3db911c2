// The program: the list of commands, handed to the command line.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "apps/commands.h"

int main(int argc, char** argv) {
  // The number of a stream that was closed before we began would go to the next file that is opened.
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/dev/null", O_RDWR);
  if (descriptor > STDERR_FILENO) close(descriptor);
  std::signal(SIGXFSZ, SIG_IGN);  // a file over its limit is then an error of the write, with path and cause
  return tapedeck::run_command_line(argc, argv, tapedeck::all_commands());
}
