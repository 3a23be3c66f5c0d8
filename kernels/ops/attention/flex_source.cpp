// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/flex_source.h"

#include <fmt/format.h>
#include <map>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/sha256.h"
#include "kernels/program/emitter.h"
#include "kernels/program/interval_analysis.h"

namespace vitrine::kernels {

namespace {

constexpr std::size_t kMaxKept = 256;

std::vector<DType> dtypesOf(const BoundProgram& program) {
    std::vector<DType> out;
    out.reserve(program.captures.tensors.size());
    for (const TensorView& tensor : program.captures.tensors) {
        out.push_back(tensor.dtype);
    }
    return out;
}

/// What stands for a program that is not there: kernels name all of them.
std::string absent(std::string_view type, std::string_view name, std::string_view before, std::string_view after,
                   std::string_view body) {
    return fmt::format("__device__ __forceinline__ {} {}({}int b, int h, int q_idx, int kv_idx, const "
                       "vt::program::Captures& c{}) {{\n    {}\n}}\n",
                       type, name, before, after, body);
}

constexpr std::string_view kNoIntervals =
    "__device__ __forceinline__ void intervalRows(int b, int h, int q_idx, const vt::program::Captures& c, int& low, "
    "int& high) {\n    low = 0;\n    high = 0x7FFFFFFF;\n}\n";

std::string maskText(const BoundProgram& mask, FlexMask form) {
    std::string out;
    if (form == FlexMask::Intervals || form == FlexMask::Elements) {
        out += emitIntervalRows(AnalysisOf(mask)->rows, dtypesOf(mask), "intervalRows");
    } else {
        out += kNoIntervals;
    }
    if (form == FlexMask::Elements) {
        out += "#ifdef VT_SPANS\n" + emitMaskSpan(*mask.program, dtypesOf(mask), "maskSpan") + "#endif\n";
    }
    out += form == FlexMask::Blocks || form == FlexMask::Elements
               ? emitProgram(*mask.program, dtypesOf(mask), "maskMod")
               : absent("bool", "maskMod", "", "", "return true;");
    return out;
}

std::string scoreText(const BoundProgram& score, const ScoreGradient* gradient,
                      const EmitOptions& options = {.reciprocals = true}) {
    std::string out = score.empty() ? absent("float", "scoreMod", "float score, ", "", "return score;")
                                    : emitProgram(*score.program, dtypesOf(score), "scoreMod", options);
    if (gradient != nullptr) {
        out += emitGradient(*gradient, dtypesOf(score), "scoreGradient", "captureGradients", options);
    } else {
        out += absent("float", "scoreGradient", "float score, float upstream, ", "", "return upstream;");
        out += "template <class Sink>\n" +
               absent("void", "captureGradients", "float score, float upstream, ", ", Sink&& sink", "");
    }
    return out;
}

std::string keyOf(const BoundProgram& program) {
    if (program.empty()) {
        return "none";
    }
    std::string out = program.analysis != nullptr ? program.analysis->key : programKey(*program.program);
    for (const DType dtype : dtypesOf(program)) {
        out += fmt::format(" {}", static_cast<int>(dtype));
    }
    return out;
}

/// Makes a source at the first call with a key.
template <class Make> std::shared_ptr<const FlexSource> kept(const std::string& key, Make make) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<const FlexSource>> sources;
    const std::lock_guard lock(mutex);
    const auto known = sources.find(key);
    if (known != sources.end()) {
        return known->second;
    }
    if (sources.size() >= kMaxKept) {
        sources.clear();
    }
    auto source = std::make_shared<FlexSource>(make());
    base::Sha256 hash;
    hash.add(source->text.text);
    source->text.digest = hash.hex();
    return sources.emplace(key, std::move(source)).first->second;
}

FlexMask formOf(const FlexAttention& op, bool backward) {
    if (op.mask.empty()) {
        return FlexMask::None;
    }
    if (op.blocks != nullptr) {
        return FlexMask::Blocks;
    }
    // Float32 walks blocks, as the backward pass does.
    if (backward || op.q.dtype == DType::F32 || !AnalysisOf(op.mask)->exact) {
        throw base::Unsupported("FlexAttention: mask: on a GPU it needs its BlockMask (blocks of 128); build it first");
    }
    return FlexMask::Intervals;
}

std::string keyOf(const FlexAttention& op, FlexMask form) {
    return fmt::format("{} {}|{}|{}", kEmitterVersion, static_cast<int>(form), keyOf(op.mask), keyOf(op.score));
}

} // namespace

std::shared_ptr<const FlexSource> forwardSource(const FlexAttention& op) {
    const FlexMask form = formOf(op, false);
    const bool fast = op.q.dtype != DType::F32; // which is chosen for its digits
    return kept((fast ? "forward " : "forward exact ") + keyOf(op, form), [&] {
        FlexSource source;
        source.mask = form;
        source.hasScore = !op.score.empty();
        source.text.text =
            maskText(op.mask, form) + scoreText(op.score, nullptr, {.fastTanh = fast, .reciprocals = fast});
        return source;
    });
}

std::shared_ptr<const FlexSource> attentionSource(const Attention& op) {
    return kept(fmt::format("attention {} {}|{}", kEmitterVersion, keyOf(op.mask), keyOf(op.score)), [&] {
        FlexSource source;
        if (!op.mask.empty()) {
            const AnalysisOf analysis(op.mask);
            source.mask = analysis->exact ? FlexMask::Intervals : FlexMask::Elements;
            source.perHead = analysis->perHead;
        }
        source.hasScore = !op.score.empty();
        // A model's answers follow its soft cap: that is worth more than an instruction.
        source.text.text = maskText(op.mask, source.mask) + scoreText(op.score, nullptr, {.fastTanh = false});
        return source;
    });
}

std::shared_ptr<const FlexSource> backwardSource(const FlexAttentionBackward& op) {
    const FlexMask form = formOf(op.forward, true);
    std::string wanted;
    for (const TensorView& tensor : op.dCaptures) {
        wanted += tensor.empty() ? '0' : '1';
    }
    // Float32 is chosen for its digits.
    const bool fast = op.forward.q.dtype != DType::F32;
    const EmitOptions options{.fastTanh = fast, .reciprocals = fast};
    return kept(fmt::format("backward {} {} {}", wanted, fast, keyOf(op.forward, form)), [&] {
        FlexSource source;
        source.mask = form;
        source.hasScore = !op.forward.score.empty();
        std::optional<ScoreGradient> gradient;
        if (source.hasScore) {
            gradient = derivativeOf(*op.forward.score.program);
            std::erase_if(gradient->captures, [&](const ScoreGradient::CaptureGradient& item) {
                const auto capture = static_cast<std::size_t>(item.capture);
                return capture >= op.dCaptures.size() || op.dCaptures[capture].empty();
            });
            source.gradients = gradient->captures;
        }
        source.text.text =
            maskText(op.forward.mask, form) + scoreText(op.forward.score, gradient ? &*gradient : nullptr, options);
        return source;
    });
}

std::shared_ptr<const FlexSource> countingSource(const BoundProgram& mask) {
    return kept(fmt::format("counts {}|{}", kEmitterVersion, keyOf(mask)), [&] {
        EmitOptions options;
        options.exact = true;
        FlexSource source;
        source.mask = FlexMask::Blocks;
        source.text.text = emitProgram(*mask.program, dtypesOf(mask), "maskMod", options);
        return source;
    });
}

} // namespace vitrine::kernels
