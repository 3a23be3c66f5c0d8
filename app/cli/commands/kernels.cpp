// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// vitrine kernels: what the packs hold, what a GPU would run of it, and the cache of compiled kernels.

#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands/commands.h"
#include "app/runner/reports/kernel_report.h"
#include "base/error.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

struct KernelsOptions {
    KernelQuestion question;
    std::vector<std::string> overrides; ///< OP=VARIANT
    std::string cache;                  ///< list, verify, clear or empty
};

std::string listText(const json& report) {
    std::string text;
    for (const json& pack : report["packs"]) {
        const auto place = pack["place"].get<std::string>();
        text += fmt::format("Pack {} ({}): {}\n", pack["name"].get<std::string>(), place,
                            pack["description"].get<std::string>());
    }
    const std::string device = report["device"].is_string() ? " (" + report["device"].get<std::string>() + ")" : "";
    text += fmt::format("\nOn {}{}, of the example calls of each family:\n", report["arch"].get<std::string>(), device);
    std::vector<std::vector<std::string>> rows{{"family", "variant", "pack", "takes", "when"}};
    for (const json& row : report["rows"]) {
        const bool runs = row["runs"];
        rows.push_back({row["family"], row["variant"], row["pack"],
                        runs ? fmt::format("{} of {}", row["chosen"].get<int>(), row["examples"].get<int>())
                             : std::string("not for it"),
                        row["when"]});
    }
    return text + engine::tableText(rows);
}

std::string cacheText(const json& report) {
    std::vector<std::vector<std::string>> rows{{"kernel", "size", "state"}};
    for (const json& row : report["rows"]) {
        const bool intact = row["intact"];
        const auto label = row["label"].get<std::string>();
        rows.push_back({label.empty() ? row["key"].get<std::string>() : label,
                        engine::resultValueText(engine::result::kBytes.key, row["bytes"]),
                        intact ? "intact" : "damaged; it will be compiled again"});
    }
    const std::string summary =
        fmt::format("{}: {} kernels, {}, {} damaged\n", report["folder"].get<std::string>(), report["rows"].size(),
                    engine::resultValueText(engine::result::kBytes.key, report["bytes"]), report["damaged"].get<int>());
    return (report["rows"].empty() ? std::string() : engine::tableText(rows)) + summary;
}

int printCache(const KernelsOptions& options, bool asJson) {
    json report;
    std::string text;
    if (options.cache == "clear") {
        report = clearCubinCache();
        text =
            fmt::format("{}: {} kernels removed\n", report["folder"].get<std::string>(), report["removed"].get<int>());
    } else {
        report = cubinCacheReport();
        text = cacheText(report);
    }
    if (asJson) {
        printJson(report);
    } else {
        printOut(text);
    }
    return options.cache == "verify" && report["damaged"] != 0 ? 1 : 0;
}

int printVariants(KernelsOptions options, bool asJson) {
    for (const std::string& pair : options.overrides) {
        const std::size_t equals = pair.find('=');
        if (equals == 0 || equals == std::string::npos || equals + 1 == pair.size()) {
            throw base::BadInput("--kernel: \"" + pair + "\" must be OP=VARIANT");
        }
        options.question.overrides.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    }
    const json report = kernelReport(options.question);
    if (asJson) {
        printJson(report);
    } else {
        printOut(listText(report));
    }
    return 0;
}

} // namespace

void addKernels(CLI::App& app, CommandLine& line) {
    CLI::App* command = addCommand(app, "kernels", "GPU kernel packs, their variants and the cache of compiled kernels",
                                   "vitrine kernels --arch sm_90a\n"
                                   "  vitrine kernels --kernel-pack my-pack --kernel ExpertGemm=my-pack/warp --json\n"
                                   "  vitrine kernels --cache verify");
    const auto options = std::make_shared<KernelsOptions>();
    command
        ->add_option("--arch", options->question.arch,
                     "Which GPU to choose for, as sm_80 or sm_90a; default the device present, else sm_90a")
        ->type_name("ARCH");
    const auto several = [command](const std::string& flag, std::vector<std::string>& to, const std::string& help,
                                   const std::string& type) {
        command->add_option(flag, to, help)
            ->type_name(type)
            ->expected(1)
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    several("--kernel-pack", options->question.packs, "Folder of a pack to list before the built-in one; runs nothing",
            "FILE");
    several("--kernel", options->overrides, "Variant that an op should take, as RmsNorm=builtin/registers",
            "OP=VARIANT");
    command
        ->add_option("--cache", options->cache,
                     "The compiled kernels on disk: list them, verify their checksums (exit 1 when one is damaged), or "
                     "remove them all")
        ->type_name("list|verify|clear")
        ->check(CLI::IsMember({"list", "verify", "clear"}).description(""));
    command->callback([&line, options] {
        line.action = [&line, options] {
            return options->cache.empty() ? printVariants(*options, line.options.json)
                                          : printCache(*options, line.options.json);
        };
    });
}

} // namespace vitrine::app
