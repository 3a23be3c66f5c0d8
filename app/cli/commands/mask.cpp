// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// vitrine mask: the block mask of a program, its sparsity and a picture of it.

#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands/commands.h"
#include "app/cli/common/console.h"
#include "app/cli/common/interrupt.h"
#include "app/cli/common/mod_options.h"
#include "app/runner/reports/mask_report.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

struct MaskOptions {
    MaskQuestion question;
    std::vector<std::string> defines;
};

std::string maskText(const json& report) {
    const auto count = [&](const char* key) { return fmt::format("{}", report[key].get<std::int64_t>()); };
    const auto share = [&](const char* key) { return fmt::format("{:.4f}", report[key].get<double>()); };
    std::vector<std::vector<std::string>> rows{{"mask", report["mask"].get<std::string>()}};
    rows.push_back(
        {"size", fmt::format("{} x {}, blocks of {}", count("q_len"), count("kv_len"), count("block_size"))});
    rows.push_back({"differs over", fmt::format("{} batch entries, {} heads", count("batch"), count("heads"))});
    rows.push_back({"full blocks", count("blocks_full")});
    rows.push_back({"partial blocks", count("blocks_partial")});
    rows.push_back({"empty blocks", count("blocks_empty")});
    rows.push_back({"block sparsity", share("block_sparsity")});
    rows.push_back({"full share", share("full_share")});
    rows.push_back({"element density", share("element_density")});
    rows.push_back({"metadata", engine::resultValueText(engine::result::kMetadataBytes.key, report["metadata_bytes"])});
    rows.push_back({"built in", engine::resultValueText(engine::result::kBuildSeconds.key, report["build_seconds"])});
    return engine::tableText(rows);
}

int printMask(MaskOptions options, const GlobalOptions& global) {
    takeDefines(options.question.mods, options.defines);
    base::StopSource stop;
    BarSink bar;
    json report;
    {
        const InterruptGuard guard([&stop] { stop.request_stop(); });
        report = maskReport(options.question, &bar, stop.get_token());
    }
    bar.clear();
    if (global.json) {
        printJson(report);
    } else {
        printOut(maskText(report));
    }
    return 0;
}

/// CLI11's own check prints the largest number of the type as the other end of its range.
CLI::Validator least(std::int64_t bound) {
    return CLI::Validator(
        [bound](const std::string& text) {
            std::int64_t value = 0;
            return CLI::detail::lexical_cast(text, value) && value >= bound
                       ? std::string()
                       : fmt::format("{} is not a whole number of at least {}", text, bound);
        },
        "");
}

} // namespace

void addMask(CLI::App& app, CommandLine& line) {
    CLI::App* command = addCommand(app, "mask", "The block mask of an attention program: sparsity, size, picture",
                                   "vitrine mask --mask \"sliding_window_causal(1024)\" --q-len 8192 --kv-len "
                                   "8192 --png mask.png");
    const auto options = std::make_shared<MaskOptions>();
    MaskQuestion& question = options->question;
    addModOptions(*command, question.mods, options->defines);
    const auto number = [command](const std::string& flag, std::int64_t& to, const std::string& help) {
        return command->add_option(flag, to, help)->type_name("N")->check(least(1));
    };
    command
        ->add_option("--mask", question.mask,
                     "A mask function, or a call that makes one: \"causal\", \"generate_natten(16, 16, 5, 5)\"")
        ->type_name("EXPR")
        ->required();
    number("--q-len", question.mods.queries, "Queries")->required();
    number("--kv-len", question.mods.keys, "Keys")->required();
    number("--block-size", question.blockSize, "Queries and keys of a block, default 128");
    number("--batch", question.mods.batch, "Batch entries, default 1");
    number("--heads", question.mods.heads, "Heads, default 1");
    command->add_option("--tensors", question.tensorsFile, "Captured tensors by name, a safetensors file")
        ->type_name("FILE");
    command->add_option("--png", question.picture, "Write a picture of the blocks")->type_name("FILE");
    command->add_option("--output", question.output, "Write the mask as PyTorch's BlockMask arrays, a safetensors file")
        ->type_name("FILE");
    command->add_option("--threads", question.threads, "CPU threads, default one for each core")
        ->type_name("N")
        ->check(least(0));
    command
        ->add_option_function<std::string>(
            "--backend", [&question](const std::string& name) { question.onGpu = name == "cuda"; },
            "Where many undecided blocks are looked into: cpu (default) or cuda")
        ->type_name("NAME")
        ->check(CLI::IsMember({"cpu", "cuda"}).description(""));
    command->callback(
        [&line, options] { line.action = [&line, options] { return printMask(*options, line.options); }; });
}

} // namespace vitrine::app
