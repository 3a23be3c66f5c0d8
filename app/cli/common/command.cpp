// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/common/command.h"

#include "base/error.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::app {

CLI::App* addCommand(CLI::App& app, const std::string& name, const std::string& description,
                     const std::string& example) {
    CLI::App* command = app.add_subcommand(name, description);
    command->fallthrough();
    command->footer("Example:\n  " + example + "\n");
    return command;
}

void requireUtf8(const std::string& option, const std::string& text) {
    if (!engine::isValidUtf8(text)) {
        throw base::BadInput(option + ": is no UTF-8 text; convert it first, as with iconv");
    }
}

} // namespace vitrine::app
