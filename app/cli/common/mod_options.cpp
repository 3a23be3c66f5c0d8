// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/common/mod_options.h"

namespace vitrine::app {

void addModOptions(CLI::App& command, engine::ProgramChoice& mods, std::vector<std::string>& defines) {
    const auto several = [&command](const std::string& flag, std::vector<std::string>& to, const std::string& help,
                                    const std::string& type) {
        command.add_option(flag, to, help)
            ->type_name(type)
            ->expected(1)
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    several("--mods", mods.files,
            "Python file with score_mod and mask_mod functions; may be given several times. The built-in catalogue is "
            "always at hand",
            "FILE");
    several("--define", defines, "An integer that the file reads as a global, as WINDOW=1024", "NAME=N");
}

void takeDefines(engine::ProgramChoice& mods, const std::vector<std::string>& defines) {
    for (const std::string& text : defines) {
        const auto [name, value] = engine::parseDefine("--define", text);
        mods.defines.insert_or_assign(name, value);
    }
}

} // namespace vitrine::app
