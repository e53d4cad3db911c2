// The program: the list of commands, handed to the command line.
#include "apps/commands.h"

int main(int argc, char** argv) { return tapedeck::run_command_line(argc, argv, tapedeck::all_commands()); }
