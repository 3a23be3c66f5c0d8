// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands/commands.h"
#include "app/runner/machine/machine_report.h"
#include "base/units.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

/// For a person.
std::string doctorText(const json& report) {
    const json& machine = report["machine"];
    std::string text =
        fmt::format("Vitrine {}\n{}, {} cores, {}; memory {}, {} free\n{}\n\n", report.value("version", ""),
                    machine.value("cpu", ""), machine.value("cores", 0), machine.value("simd", ""),
                    base::formatBytes(machine.value("memory_bytes", std::uint64_t{0})),
                    base::formatBytes(machine.value("available_bytes", std::uint64_t{0})), machine.value("os", ""));
    text += "Backends\n";
    for (const json& backend : report["backends"]) {
        const bool available = backend.value("available", false);
        text += fmt::format("  {:<6}{}{}\n", backend.value("name", ""),
                            available ? "on" : "off: ", backend.value("reason", ""));
    }
    text += "\nGPUs\n";
    for (const json& gpu : report["gpus"]) {
        text += fmt::format("  {}, {}\n", gpu.value("name", ""),
                            base::formatBytes(gpu.value("memory_bytes", std::uint64_t{0})));
    }
    text += report["gpus"].empty() ? "  none\n" : "";
    text += "\nLibraries\n";
    for (const json& library : report["libraries"]) {
        if (library.value("found", false)) {
            text += fmt::format("  {:<9} {} {}\n", library.value("name", ""), library.value("version", ""),
                                library.value("path", ""));
        } else {
            text += fmt::format("  {:<9} {}\n", library.value("name", ""), missingText(library));
        }
    }
    if (!report["profiling"].empty()) {
        text += "\nProfiling of the GPU\n";
    }
    for (const json& part : report["profiling"]) {
        const bool ready = part.value("ready", false);
        text +=
            fmt::format("  {}: {}{}\n", part.value("name", ""), ready ? "ready" : "off: ", part.value("reason", ""));
    }
    for (const json& warning : report["warnings"]) {
        text += fmt::format("\nWarning: {}\n", warning.get<std::string>());
    }
    return text;
}

} // namespace

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
