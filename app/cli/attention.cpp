// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// vitrine attention: attention with programs, forward and backward, checked and timed.

#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/mod_options.h"
#include "app/cli/result_text.h"
#include "app/runner/attention_report.h"
#include "base/error.h"
#include "kernels/cuda_context.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

struct AttentionOptions {
    AttentionQuestion question;
    std::vector<std::string> defines;
    std::string random, backend = "auto", dtype, profile;
    double scale = 0;
    bool scaled = false;
};

std::string attentionText(const json& report) {
    const auto rate = [&](const char* key) {
        return report[key].is_null() ? std::string("-") : fmt::format("{:.4g}", report[key].get<double>());
    };
    std::string text = fmt::format("{} on {}: batch {}, heads {}, KV heads {}, {} queries, {} keys, head dim {}\n",
                                   report["dtype"].get<std::string>(), report["device"].get<std::string>(),
                                   report["batch"].get<std::int64_t>(), report["heads"].get<std::int64_t>(),
                                   report["kv_heads"].get<std::int64_t>(), report["q_len"].get<std::int64_t>(),
                                   report["kv_len"].get<std::int64_t>(), report["head_dim"].get<std::int64_t>());
    if (report.contains("block_sparsity")) {
        text += fmt::format("block sparsity {:.4f}, full share {:.4f}\n", report["block_sparsity"].get<double>(),
                            report["full_share"].get<double>());
    }
    return text + tableText({{"", "ms", "TFLOP/s"},
                             {"forward", rate("forward_ms"), rate("forward_tflops")},
                             {"backward", rate("backward_ms"), rate("backward_tflops")}});
}

kernels::Backend backendOf(const std::string& name) {
    if (name == "auto") {
        return kernels::cudaDevices().empty() ? kernels::Backend::Cpu : kernels::Backend::Cuda;
    }
    return name == "cpu" ? kernels::Backend::Cpu : name == "meta" ? kernels::Backend::Meta : kernels::Backend::Cuda;
}

int tellAttention(AttentionOptions options, const GlobalOptions& global) {
    AttentionQuestion& question = options.question;
    takeDefines(question.mods, options.defines);
    if (!options.random.empty()) {
        question.random = parseRandomAttention(options.random);
    }
    question.backend = backendOf(options.backend);
    if (question.backend == kernels::Backend::Meta) {
        question.traits = kernels::loadDeviceProfile(options.profile.empty() ? "h100-80gb" : options.profile);
    } else if (!options.profile.empty()) {
        throw base::BadInput("--device-profile: only --backend meta takes a profile");
    }
    if (!options.dtype.empty()) {
        question.dtype = options.dtype == "bfloat16"  ? kernels::DType::BF16
                         : options.dtype == "float16" ? kernels::DType::F16
                         : options.dtype == "float64" ? kernels::DType::F64
                                                      : kernels::DType::F32;
    }
    if (options.scaled) {
        question.scale = options.scale;
    }
    const json report = attentionReport(question, {});
    if (global.json) {
        printJson(report);
    } else {
        printOut(attentionText(report));
    }
    return 0;
}

} // namespace

void addAttention(CLI::App& app, CommandLine& line) {
    CLI::App* command =
        addCommand(app, "attention", "Attention with score and mask programs, forward and backward",
                   "vitrine attention --mods my_mods.py --score alibi --mask causal --tensors qkv.safetensors "
                   "--backward --output out.safetensors");
    const auto options = std::make_shared<AttentionOptions>();
    AttentionQuestion& question = options->question;
    addModOptions(*command, question.mods, options->defines);
    const auto text = [command](const std::string& flag, std::string& to, const std::string& help,
                                const std::string& type) {
        return command->add_option(flag, to, help)->type_name(type);
    };
    text("--score", question.score, "A score function, or a call that makes one", "EXPR");
    text("--mask", question.mask,
         "A mask function, or a call that makes one: \"causal\", \"generate_natten(16, 16, 5, 5)\"", "EXPR");
    text("--tensors", question.tensorsFile,
         "q, k, v (batch, heads, seq, headDim), grad_out, optional sinks, and captured tensors by name: a safetensors "
         "file",
         "FILE");
    text("--random", options->random, "Random q, k, v and grad_out of these sizes in place of the file's",
         "B,H,HKV,S,D");
    command->add_flag("!--no-sinks", question.sinks, "Leave the file's sinks out");
    command->add_flag("--backward", question.backward, "Also compute gradients");
    text("--output", question.output, "Write out, lse, dq, dk, dv and d.NAME as a safetensors file", "FILE");
    text("--backend", options->backend, "Where to run, default auto", "auto|cpu|cuda|meta")
        ->check(CLI::IsMember({"auto", "cpu", "cuda", "meta"}).description(""));
    text("--device-profile", options->profile, "The device that Meta stands for, default h100-80gb", "NAME|FILE");
    text("--dtype", options->dtype, "Type of q, k and v, default the file's; random: float32 on CPU, else bfloat16",
         "float32|bfloat16|float16|float64")
        ->check(CLI::IsMember({"float32", "bfloat16", "float16", "float64"}).description(""));
    command->add_option("--block-size", question.blockSize, "Queries and keys of a mask block, default 128")
        ->type_name("N")
        ->check(CLI::PositiveNumber.description(""));
    command->add_option("--scale", options->scale, "Factor of q.k, default 1 / sqrt(headDim)")
        ->type_name("X")
        ->each([options](const std::string&) { options->scaled = true; });
    command->add_option("--seed", question.seed, "Of --random, default 0")->type_name("N");
    command->add_option("--threads", question.threads, "CPU threads, default one for each core")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber.description(""));
    command->add_option("--repeat", question.repeat, "Runs to take the median of, default 3")
        ->type_name("N")
        ->check(CLI::PositiveNumber.description(""));
    command->callback(
        [&line, options] { line.action = [&line, options] { return tellAttention(*options, line.options); }; });
}

} // namespace vitrine::app
