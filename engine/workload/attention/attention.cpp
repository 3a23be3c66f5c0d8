// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/attention/block_mask_cache.h"
#include "engine/attention/device_blocks.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/output_check.h"
#include "engine/language/program_choice.h"
#include "engine/workload/attention/attention_run.h"
#include "engine/workload/attention/attention_tensors.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/results.h"
#include "kernels/core/device_traits.h"
#include "kernels/core/op.h"
#include "kernels/ops/attention/flex_attention.h"

namespace vitrine::engine {

namespace {

using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;
using nlohmann::json;

DType dtypeOption(const Run& run) {
    const std::string name = run.spec.text("dtype");
    return name == "bfloat16"  ? DType::BF16
           : name == "float16" ? DType::F16
           : name == "float64" ? DType::F64
           : name == "float32" ? DType::F32
                               : DType::None;
}

/// A chosen program with its captures where the run reads them.
struct Loaded {
    ChosenProgram mod;
    std::vector<Tensor> tensors;
    kernels::BoundProgram bound;
};

/// Times of one direction, with the mask and without.
struct Direction {
    double seconds = 0;
    std::optional<double> full;
    std::optional<double> planned; ///< what the plan of the kernel says; a CPU has none
};

class AttentionRun {
public:
    explicit AttentionRun(const Run& run) : run_(run), holder_(makeContext(run)), context_(*holder_) {}

    void run() {
        addContextMetrics(run_, context_);
        run_.metrics.erase(result::kModel.key);
        readInputs();
        loadPrograms();
        prepare();
        describe();
        const bool backward = run_.spec.flag("backward");
        if (backward) {
            prepareBackward();
        }
        compileKernels(backward);
        forwardTimes_.seconds = medianSeconds(forward_, "Forward", result::kForwardMs);
        forwardTimes_.planned = plannedSeconds(forward_);
        addTimes("forward", forwardTimes_);
        if (backward) {
            backwardTimes_.seconds = medianSeconds(backward_, "Backward", result::kBackwardMs);
            backwardTimes_.planned = plannedSeconds(backward_);
            addTimes("backward", backwardTimes_);
        }
        if (run_.spec.has("output") && context_.can().computesValues) {
            writeOutput();
        }
        if (run_.spec.flag("compare_full")) {
            timeFull(backward);
        }
        addMemoryMetrics(run_.metrics, context_);
        addKernelMetrics(run_.metrics, context_);
    }

private:
    Tensor make(std::string_view name, DType dtype, const Shape& shape) {
        return {context_.memory().general(), base::MemoryCategory::Activations, name, dtype, shape};
    }
    Tensor uploaded(std::string_view name, DType dtype, const Shape& shape, const void* data) {
        Tensor tensor = make(name, dtype, shape);
        if (context_.can().computesValues) {
            context_.upload(data, tensor.view().data, tensor.view().bytes());
        }
        return tensor;
    }
    Tensor uploaded(std::string_view name, const HostTensor& host) {
        return uploaded(name, host.dtype, host.shape, host.bytes.data());
    }

    void readInputs() {
        const std::string file = run_.spec.text("tensors");
        const DType asked = dtypeOption(run_);
        if (!file.empty()) {
            captured_ = readCapturedTensors(file);
        }
        if (!run_.spec.has("random")) {
            in_ = readAttentionInputs(file, asked, run_.spec.flag("backward"), !run_.spec.flag("no_sinks"));
            checkAttentionInputs(in_, file);
            return;
        }
        const bool cpu = context_.can().runsOnHost;
        progress("Making random tensors", 0, 0);
        in_ = randomAttentionInputs(parseAttentionSizes(run_.spec.text("random")),
                                    asked != DType::None ? asked
                                    : cpu                ? DType::F32
                                                         : DType::BF16,
                                    run_.seed(), run_.spec.flag("backward"), !context_.can().computesValues);
        checkAttentionInputs(in_, "random");
    }

    ProgramChoice choice() const {
        ProgramChoice choice;
        choice.files = run_.spec.texts("mods");
        choice.program = run_.spec.text("program");
        for (const std::string& text : run_.spec.texts("define")) {
            const auto [name, value] = parseDefine("define", text);
            choice.defines.insert_or_assign(name, value);
        }
        for (const std::string& text : run_.spec.texts("parameter")) {
            const auto [name, value] = parseParameter("parameter", text);
            choice.parameters.insert_or_assign(name, value);
        }
        choice.captures = run_.spec.texts("capture");
        choice.batch = in_.q.shape[0];
        choice.heads = in_.q.shape[1];
        choice.kvHeads = in_.k.shape[1];
        choice.queries = in_.q.shape[2];
        choice.keys = in_.k.shape[2];
        choice.headDim = in_.q.shape[3];
        return choice;
    }

    void loadPrograms() {
        const std::string score = run_.spec.text("score");
        const std::string mask = run_.spec.text("mask");
        if (score.empty() && mask.empty()) {
            return;
        }
        const ProgramChoice asked = choice();
        const PyModule module = parseModule(asked);
        const ProgramOptions options = programOptions(asked, captured_);
        if (!score.empty()) {
            bind(module.score(score, options), score_);
        }
        if (mask.empty()) {
            return;
        }
        bind(module.mask(mask, options), mask_);
        const std::int64_t block = run_.spec.integer("block_size");
        const auto begin = std::chrono::steady_clock::now();
        base::ThreadPool pool(static_cast<int>(run_.spec.integer("threads")));
        const kernels::BlockMaskShape shape{asked.batch, asked.heads, asked.queries, asked.keys, block, block};
        const auto onDevice = deviceBlocks(context_, mask_.bound, shape);
        const BlockMaskCache::Found found = BlockMaskCache::shared().get(
            mask_.mod.program, mask_.mod.binding(), shape, pool, run_.sinks.progress, run_.stop, onDevice.get());
        blocks_ = found.mask;
        blocksKept_ = found.hit;
        buildSeconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    void bind(ChosenProgram mod, Loaded& to) {
        to.mod = std::move(mod);
        const kernels::CaptureBinding host = to.mod.binding();
        for (std::size_t i = 0; i < host.tensors.size(); ++i) {
            const TensorView& view = host.tensors[i];
            to.tensors.push_back(uploaded(to.mod.program.captures[i].name, view.dtype, view.shape, view.data));
            to.bound.captures.tensors.push_back(to.tensors.back().view());
        }
        to.bound.program = &to.mod.program;
    }

    void prepare() {
        q_ = uploaded("q", in_.q);
        k_ = uploaded("k", in_.k);
        v_ = uploaded("v", in_.v);
        if (in_.sinks.has_value()) {
            sinks_ = uploaded("sinks", *in_.sinks);
        }
        const Shape& shape = in_.q.shape;
        out_ = make("out", in_.q.dtype, shape);
        lse_ = make("lse", in_.q.dtype == DType::F64 ? DType::F64 : DType::F32, Shape{shape[0], shape[1], shape[2]});
        forward_.q = q_.view();
        forward_.k = k_.view();
        forward_.v = v_.view();
        forward_.score = score_.bound;
        forward_.mask = mask_.bound;
        forward_.blocks = blocks_.get();
        forward_.sinks = sinks_.view();
        forward_.scale =
            static_cast<float>(run_.spec.maybeReal("scale").value_or(1 / std::sqrt(static_cast<double>(shape[3]))));
        forward_.out = out_.view();
        forward_.lse = lse_.view();
        scratch_ = make("scratch", DType::U8, scratchShape(kernels::scratch(forward_, context_.traits())));
        forward_.scratch = scratch_.view();
    }

    /// All at the same time, where kernels are compiled for the programs.
    void compileKernels(bool backward) {
        kernels::Prefetch prefetch(context_);
        prefetch.add(forward_);
        if (backward) {
            prefetch.add(backward_);
        }
    }

    static Shape scratchShape(std::uint64_t bytes) {
        return Shape{static_cast<std::int64_t>(std::max<std::uint64_t>(bytes, 1))};
    }

    void prepareBackward() {
        gradOut_ = uploaded("grad_out", *in_.gradOut);
        dq_ = make("dq", in_.q.dtype, in_.q.shape);
        dk_ = make("dk", in_.k.dtype, in_.k.shape);
        dv_ = make("dv", in_.v.dtype, in_.v.shape);
        backward_.forward = forward_;
        backward_.gradOut = gradOut_.view();
        backward_.dq = dq_.view();
        backward_.dk = dk_.view();
        backward_.dv = dv_.view();
        if (in_.sinks.has_value()) {
            dSinks_ = make("d.sinks", DType::F32, in_.sinks->shape);
            backward_.dSinks = dSinks_.view();
        }
        if (score_.bound.program != nullptr) {
            for (std::size_t i = 0; i < score_.tensors.size(); ++i) {
                const kernels::ProgramCapture& capture = score_.mod.program.captures[i];
                dCaptures_.push_back(capture.differentiable
                                         ? make("d." + capture.name, DType::F32, score_.tensors[i].view().shape)
                                         : Tensor());
                backward_.dCaptures.push_back(dCaptures_.back().view());
            }
        }
        backwardScratch_ = make("scratch", DType::U8, scratchShape(kernels::scratch(backward_, context_.traits())));
        backward_.scratch = backwardScratch_.view();
    }

    /// The median; its single times are kept in ms as repeats of `field`.
    template <class Op> double medianSeconds(const Op& op, std::string_view what, const ResultField& field) {
        const std::int64_t times = run_.repeats(3);
        std::vector<double> all = secondsOfRuns(context_, times, [&](std::int64_t i) {
            base::throwIfStopped(run_.stop);
            progress(what, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(times));
            context_.run(op);
        });
        const double middle = median(all);
        std::ranges::for_each(all, [](double& time) { time *= 1e3; });
        addRepeats(run_.metrics, std::string(field.key), all);
        return middle;
    }

    /// The device profile knows what the kernel reaches; a device without one is asked for its rates.
    template <class Op> std::optional<double> plannedSeconds(const Op& op) {
        if (context_.can().runsOnHost) {
            return std::nullopt;
        }
        const std::string profile = kernels::profileOfDevice(context_.traits().name);
        const kernels::DeviceTraits traits = profile.empty() ? context_.traits() : kernels::loadDeviceProfile(profile);
        return kernels::opSeconds(Op::kName, kernels::cost(op, traits), traits).seconds;
    }

    /// The same tensors and score without the mask. Its results take the place of the masked ones, which are written by
    /// now.
    void timeFull(bool backward) {
        const bool masked = mask_.bound.program != nullptr;
        kernels::FlexAttention full = forward_;
        full.mask = {};
        full.blocks = nullptr;
        Tensor forwardScratch, backwardScratch;
        if (masked) {
            forwardScratch = make("scratch", DType::U8, scratchShape(kernels::scratch(full, context_.traits())));
            full.scratch = forwardScratch.view();
            forwardTimes_.full = medianSeconds(full, "Forward without the mask", result::kFullForwardMs);
        } else {
            forwardTimes_.full = forwardTimes_.seconds;
        }
        addTimes("forward", forwardTimes_);
        if (backward && masked) {
            kernels::FlexAttentionBackward fullBackward = backward_;
            fullBackward.forward = full;
            backwardScratch =
                make("scratch", DType::U8, scratchShape(kernels::scratch(fullBackward, context_.traits())));
            fullBackward.scratch = backwardScratch.view();
            backwardTimes_.full = medianSeconds(fullBackward, "Backward without the mask", result::kFullBackwardMs);
        } else if (backward) {
            backwardTimes_.full = backwardTimes_.seconds;
        }
        if (backward) {
            addTimes("backward", backwardTimes_);
        }
    }

    void progress(std::string_view what, std::uint64_t done, std::uint64_t total) {
        if (run_.sinks.progress != nullptr) {
            run_.sinks.progress->progress(what, done, total);
        }
    }

    void writeOutput() {
        std::vector<const Tensor*> tensors;
        std::vector<TensorSpec> specs;
        const auto add = [&](const std::string& name, const Tensor& tensor) {
            if (!tensor.empty()) {
                const auto dims = tensor.view().shape.dims();
                specs.push_back({name, tensor.view().dtype, {dims.begin(), dims.end()}});
                tensors.push_back(&tensor);
            }
        };
        add("out", out_);
        add("lse", lse_);
        if (run_.spec.flag("backward")) {
            add("dq", dq_);
            add("dk", dk_);
            add("dv", dv_);
            add("d.sinks", dSinks_);
            for (std::size_t i = 0; i < dCaptures_.size(); ++i) {
                add("d." + score_.mod.program.captures[i].name, dCaptures_[i]);
            }
        }
        const auto writer = SafetensorsWriter::create(run_.spec.text("output"), specs, madeBy(kAttentionOutput));
        for (const Tensor* tensor : tensors) {
            std::vector<std::byte> host(tensor->view().bytes());
            context_.download(tensor->view().data, host.data(), host.size());
            writer->write(host.data(), host.size());
        }
        writer->finish();
    }

    /// What is known before anything was timed: a run that is stopped keeps it.
    void describe() {
        json& out = run_.metrics;
        out[result::kDtype.key] = kernels::dtypeName(in_.q.dtype);
        out[result::kBatch.key] = in_.q.shape[0];
        out[result::kHeads.key] = in_.q.shape[1];
        out[result::kKvHeads.key] = in_.k.shape[1];
        out[result::kQLen.key] = in_.q.shape[2];
        out[result::kKvLen.key] = in_.k.shape[2];
        out[result::kHeadDim.key] = in_.q.shape[3];
        out[result::kForwardFlops.key] = forwardFlops();
        out[result::kBackwardMs.key] = nullptr;
        out[result::kBackwardTflops.key] = nullptr;
        if (blocks_ != nullptr) {
            out[result::kBlockSize.key] = run_.spec.integer("block_size");
            out[result::kBlockSparsity.key] = blocks_->blockSparsity();
            out[result::kFullShare.key] = blocks_->fullShare();
            out[result::kMetadataBytes.key] = blocks_->metadataBytes();
            out[result::kBuildSeconds.key] = buildSeconds_;
            out[result::kBlockMaskCached.key] = blocksKept_;
        }
        json notes = json::array();
        for (const Loaded* loaded : {&score_, &mask_}) {
            for (const std::string& note : loaded->mod.notes) {
                notes.push_back(note);
            }
        }
        out[result::kNotes.key] = std::move(notes);
    }

    double forwardFlops() const {
        return 4 * kernels::computedElements(forward_) * static_cast<double>(in_.q.shape[3]);
    }

    /// NAME_ms, NAME_tflops; with the time without the mask full_NAME_ms. predicted_NAME_ms: what the plan of the
    /// kernel says; on a CPU, which has no plan, the time without the mask by the share of blocks that are computed.
    void addTimes(const std::string& name, const Direction& times) {
        const double flops = forwardFlops() * (name == "backward" ? 2.5 : 1);
        json& out = run_.metrics;
        out[name + "_ms"] = times.seconds * 1e3;
        out[name + "_tflops"] = times.seconds > 0 ? json(flops / times.seconds * 1e-12) : json();
        if (times.full.has_value()) {
            out["full_" + name + "_ms"] = *times.full * 1e3;
        }
        if (times.planned || times.full) {
            const double computed = blocks_ != nullptr ? 1 - blocks_->blockSparsity() : 1;
            out["predicted_" + name + "_ms"] = 1e3 * (times.planned ? *times.planned : *times.full * computed);
        }
    }

    const Run& run_;
    RunDevices holder_;
    kernels::Context& context_;
    CapturedTensors captured_;
    AttentionInputs in_;
    Loaded score_, mask_;
    std::shared_ptr<const kernels::BlockMask> blocks_;
    bool blocksKept_ = false; ///< from the cache
    double buildSeconds_ = 0;
    Direction forwardTimes_, backwardTimes_;
    Tensor q_, k_, v_, sinks_, out_, lse_, scratch_;
    Tensor gradOut_, dq_, dk_, dv_, dSinks_, backwardScratch_;
    std::vector<Tensor> dCaptures_;
    kernels::FlexAttention forward_;
    kernels::FlexAttentionBackward backward_;
};

} // namespace

void runAttention(const Run& run) {
    AttentionRun(run).run();
}

} // namespace vitrine::engine
