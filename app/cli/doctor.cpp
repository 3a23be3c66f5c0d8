// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/result_text.h"
#include "app/runner/machine_report.h"

namespace vitrine::app {

void addDoctor(CLI::App& app, CommandLine& line) {
    CLI::App* command =
        addCommand(app, "doctor", "What this machine offers, what is off and how to get it", "vitrine doctor --json");
    command->callback([&line] {
        line.action = [&line] {
            const nlohmann::json report = machineReport();
            if (line.options.json) {
                printJson(report);
            } else {
                printOut(doctorText(report));
            }
            return 0;
        };
    });
}

} // namespace vitrine::app
