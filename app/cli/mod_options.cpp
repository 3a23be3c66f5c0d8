// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/mod_options.h"

#include <charconv>
#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::app {

void addModOptions(CLI::App& command, ModRequest& mods, std::vector<std::string>& defines) {
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

void takeDefines(ModRequest& mods, const std::vector<std::string>& defines) {
    for (const std::string& text : defines) {
        const std::size_t equals = text.find('=');
        std::int64_t value = 0;
        bool valid = equals != std::string::npos && equals > 0;
        if (valid) {
            const char* end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data() + equals + 1, end, value);
            valid = error == std::errc{} && stop == end;
        }
        if (!valid) {
            throw base::BadInput(fmt::format("--define: \"{}\" must be NAME=INTEGER", text));
        }
        mods.defines[text.substr(0, equals)] = value;
    }
}

} // namespace vitrine::app
