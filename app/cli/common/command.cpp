// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/common/command.h"

namespace vitrine::app {

CLI::App* addCommand(CLI::App& app, const std::string& name, const std::string& description,
                     const std::string& example) {
    CLI::App* command = app.add_subcommand(name, description);
    command->fallthrough();
    command->footer("Example:\n  " + example + "\n");
    return command;
}

} // namespace vitrine::app
