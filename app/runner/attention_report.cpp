// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/attention_report.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/philox.h"
#include "base/units.h"
#include "engine/checkpoint/checkpoint.h"
#include "kernels/ops/flex_attention.h"
#include "kernels/ops/floats.h"

namespace vitrine::app {

namespace {

using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;
using nlohmann::json;

constexpr double kMostElements = 1e10; ///< of random tensors

/// A tensor on the host: bytes and how to read them.
struct HostTensor {
    DType dtype = DType::F32;
    Shape shape;
    std::vector<std::byte> bytes;
    const void* data() const { return bytes.data(); }
};

/// A float tensor of the file, in this dtype; None: as it is stored.
HostTensor readTensor(const engine::SafetensorsFile& file, const engine::TensorEntry& entry, DType dtype) {
    if (kernels::loadedType(entry.dtype) != kernels::ProgramType::Float) {
        throw base::BadInput(fmt::format("{}: {}: is {}; give float32, float64, bfloat16 or float16", file.path(),
                                         entry.name, kernels::dtypeName(entry.dtype)));
    }
    if (entry.shape.size() > static_cast<std::size_t>(kernels::kMaxRank)) {
        throw base::BadInput(fmt::format("{}: {}: has {} dimensions; (batch, heads, seq, headDim) is needed",
                                         file.path(), entry.name, entry.shape.size()));
    }
    const Shape shape(entry.shape);
    std::vector<std::byte> stored(entry.bytes);
    file.read(entry, 0, stored.data(), stored.size());
    if (dtype == DType::None || dtype == entry.dtype) {
        return {entry.dtype, shape, std::move(stored)};
    }
    HostTensor out{dtype, shape, std::vector<std::byte>(kernels::bytesOf(dtype, shape.count()))};
    std::vector<double> values(static_cast<std::size_t>(shape.count()));
    kernels::loadFloats(entry.dtype, stored.data(), 0, shape.count(), values.data());
    kernels::storeFloats(dtype, values.data(), shape.count(), out.bytes.data(), 0);
    return out;
}

/// Normally distributed numbers that depend on the seed and the tensor alone.
HostTensor randomTensor(DType dtype, const Shape& shape, std::uint64_t seed, std::uint32_t stream) {
    HostTensor out{dtype, shape, {}};
    const std::int64_t count = shape.count();
    out.bytes.resize(kernels::bytesOf(dtype, count));
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); i += 4) {
        const auto words = base::philox4x32(base::philoxKey(seed, stream), i, 0);
        for (std::size_t j = 0; j < 4 && i + j < values.size(); j += 2) {
            const float radius = std::sqrt(-2 * std::log(base::uniformOpen(words[j])));
            const float angle = 2 * std::numbers::pi_v<float> * base::uniformOpen(words[j + 1]);
            values[i + j] = radius * std::cos(angle);
            if (i + j + 1 < values.size()) {
                values[i + j + 1] = radius * std::sin(angle);
            }
        }
    }
    kernels::storeFloats(dtype, values.data(), count, out.bytes.data(), 0);
    return out;
}

/// q, k, v, grad_out and sinks of one run.
struct Inputs {
    HostTensor q, k, v;
    std::optional<HostTensor> gradOut, sinks;
};

Inputs fromFile(const AttentionQuestion& question) {
    const auto file = engine::SafetensorsFile::open(question.tensorsFile);
    const auto read = [&](const std::string& name, DType dtype) {
        const engine::TensorEntry* entry = file->find(name);
        if (entry == nullptr) {
            throw base::BadInput(fmt::format("{}: {}: the file has no such tensor; add it, or use --random B,H,HKV,S,D",
                                             question.tensorsFile, name));
        }
        if (entry->shape.size() != 4) {
            throw base::BadInput(fmt::format("{}: {}: has {} dimensions; (batch, heads, seq, headDim) is needed",
                                             question.tensorsFile, name, entry->shape.size()));
        }
        return readTensor(*file, *entry, dtype);
    };
    Inputs out;
    out.q = read("q", question.dtype);
    out.k = read("k", out.q.dtype);
    out.v = read("v", out.q.dtype);
    if (question.backward) {
        out.gradOut = read("grad_out", out.q.dtype);
    }
    if (const engine::TensorEntry* sinks = file->find("sinks"); sinks != nullptr && question.sinks) {
        out.sinks = readTensor(*file, *sinks, DType::F32);
    }
    return out;
}

Inputs randomInputs(const AttentionQuestion& question, const RandomAttention& sizes) {
    const bool cpu = question.backend == kernels::Backend::Cpu;
    const DType dtype = question.dtype != DType::None ? question.dtype : cpu ? DType::F32 : DType::BF16;
    const Shape query{sizes.batch, sizes.heads, sizes.length, sizes.headDim};
    const Shape key{sizes.batch, sizes.kvHeads, sizes.length, sizes.headDim};
    const double elements = static_cast<double>(sizes.batch) * static_cast<double>(sizes.heads + sizes.kvHeads) *
                            static_cast<double>(sizes.length) * static_cast<double>(sizes.headDim);
    if (elements > kMostElements) {
        throw base::BadInput(fmt::format("--random: {:.3g} elements are too many; choose smaller sizes", elements));
    }
    if (question.backend == kernels::Backend::Meta) { // nobody reads them
        return {{dtype, query, {}}, {dtype, key, {}}, {dtype, key, {}}, HostTensor{dtype, query, {}}, {}};
    }
    return {randomTensor(dtype, query, question.seed, 0),
            randomTensor(dtype, key, question.seed, 1),
            randomTensor(dtype, key, question.seed, 2),
            randomTensor(dtype, query, question.seed, 3),
            {}};
}

void checkInputs(const Inputs& in, const std::string& place) {
    const auto fail = [&](std::string_view name, const std::string& what) {
        throw base::BadInput(fmt::format("{}: {}: {}", place, name, what));
    };
    const Shape& q = in.q.shape;
    if (q.count() <= 0 || in.k.shape.count() <= 0) {
        fail("q", "it is empty; every side of q, k and v must be at least 1");
    }
    if (in.k.shape[0] != q[0] || in.k.shape[3] != q[3]) {
        fail("k", fmt::format("shape {} beside q's {}; batch and headDim must agree", in.k.shape.text(), q.text()));
    }
    if (in.v.shape != in.k.shape) {
        fail("v", fmt::format("shape {} where k has {}; they must agree", in.v.shape.text(), in.k.shape.text()));
    }
    if (q[1] % in.k.shape[1] != 0) {
        fail("k", fmt::format("{} heads, and q has {}; q's must be a multiple", in.k.shape[1], q[1]));
    }
    if (in.gradOut.has_value() && in.gradOut->shape != q) {
        fail("grad_out", fmt::format("shape {} where q has {}; they must agree", in.gradOut->shape.text(), q.text()));
    }
    if (in.sinks.has_value() && in.sinks->shape != Shape{q[1]}) {
        fail("sinks", fmt::format("shape {}; one for each of the {} heads is needed", in.sinks->shape.text(), q[1]));
    }
}

/// A chosen program with its captures where the run reads them.
struct Loaded {
    engine::ModProgram mod;
    std::vector<Tensor> tensors;
    kernels::BoundProgram bound;
};

class AttentionRun {
public:
    AttentionRun(const AttentionQuestion& question, const base::StopToken& stop)
        : question_(question), stop_(stop), context_(contextOptions(question, stop)) {}

    json run() {
        if (!question_.tensorsFile.empty()) {
            captured_ = engine::readCapturedTensors(question_.tensorsFile);
        }
        if (!question_.random.has_value() && question_.tensorsFile.empty()) {
            throw base::BadInput("--tensors: name a file with q, k and v, or use --random B,H,HKV,S,D");
        }
        in_ = question_.random.has_value() ? randomInputs(question_, *question_.random) : fromFile(question_);
        checkInputs(in_, question_.random.has_value() ? "--random" : question_.tensorsFile);
        loadPrograms();
        prepare();
        const double forward = medianSeconds(forward_);
        std::optional<double> backward;
        if (question_.backward) {
            prepareBackward();
            backward = medianSeconds(backward_);
        }
        if (!question_.output.empty() && !context_.isMeta()) {
            writeOutput();
        }
        return report(forward, backward);
    }

private:
    static kernels::ContextOptions contextOptions(const AttentionQuestion& question, const base::StopToken& stop) {
        kernels::ContextOptions options;
        options.backend = question.backend;
        options.threads = question.threads;
        options.traits =
            question.backend == kernels::Backend::Cpu ? kernels::cpuTraits(question.threads) : question.traits;
        options.stop = stop;
        return options;
    }

    Tensor make(std::string_view name, DType dtype, const Shape& shape) {
        return {context_.memory().general(), base::MemoryCategory::Activations, name, dtype, shape};
    }
    Tensor uploaded(std::string_view name, DType dtype, const Shape& shape, const void* data) {
        Tensor tensor = make(name, dtype, shape);
        if (!context_.isMeta()) {
            context_.upload(data, tensor.view().data, tensor.view().bytes());
        }
        return tensor;
    }
    Tensor uploaded(std::string_view name, const HostTensor& host) {
        return uploaded(name, host.dtype, host.shape, host.data());
    }

    void loadPrograms() {
        ModRequest request = question_.mods;
        request.batch = in_.q.shape[0];
        request.heads = in_.q.shape[1];
        request.kvHeads = in_.k.shape[1];
        request.queries = in_.q.shape[2];
        request.keys = in_.k.shape[2];
        request.headDim = in_.q.shape[3];
        if (question_.score.empty() && question_.mask.empty()) {
            return;
        }
        const engine::ModModule module = parseMods(request);
        const engine::ModOptions options = modOptions(request, captured_);
        if (!question_.score.empty()) {
            bind(module.score(question_.score, options), score_);
        }
        if (!question_.mask.empty()) {
            bind(module.mask(question_.mask, options), mask_);
            const auto begin = std::chrono::steady_clock::now();
            base::ThreadPool pool(question_.threads);
            blocks_ = kernels::buildBlockMask(
                mask_.mod.program, mask_.mod.binding(),
                {request.batch, request.heads, request.queries, request.keys, question_.blockSize, question_.blockSize},
                pool, nullptr, stop_);
            buildSeconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        }
    }

    void bind(engine::ModProgram mod, Loaded& to) {
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
        forward_.blocks = blocks_.has_value() ? &*blocks_ : nullptr;
        forward_.sinks = sinks_.view();
        forward_.scale = static_cast<float>(question_.scale.value_or(1 / std::sqrt(static_cast<double>(shape[3]))));
        forward_.out = out_.view();
        forward_.lse = lse_.view();
        scratch_ = make("scratch", DType::U8, scratchShape(kernels::scratch(forward_, context_.traits())));
        forward_.scratch = scratch_.view();
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

    template <class Op> double medianSeconds(const Op& op) {
        std::vector<double> seconds;
        for (int i = 0; i < std::max(1, question_.repeat); ++i) {
            base::throwIfStopped(stop_);
            seconds.push_back(timed(op));
        }
        std::sort(seconds.begin(), seconds.end());
        return seconds[seconds.size() / 2];
    }

    template <class Op> double timed(const Op& op) {
        if (kernels::CudaContext* cuda = context_.cuda()) {
            const kernels::CudaEvent begin = cuda->record();
            context_.run(op);
            return cuda->record().secondsSince(begin);
        }
        const base::TimeNs begin = context_.clock().now();
        context_.run(op);
        return static_cast<double>(context_.clock().now() - begin) * 1e-9;
    }

    void writeOutput() {
        std::vector<const Tensor*> tensors;
        std::vector<engine::TensorSpec> specs;
        const auto add = [&](const std::string& name, const Tensor& tensor) {
            if (!tensor.empty()) {
                const auto dims = tensor.view().shape.dims();
                specs.push_back({name, tensor.view().dtype, {dims.begin(), dims.end()}});
                tensors.push_back(&tensor);
            }
        };
        add("out", out_);
        add("lse", lse_);
        if (question_.backward) {
            add("dq", dq_);
            add("dk", dk_);
            add("dv", dv_);
            add("d.sinks", dSinks_);
            for (std::size_t i = 0; i < dCaptures_.size(); ++i) {
                add("d." + score_.mod.program.captures[i].name, dCaptures_[i]);
            }
        }
        const auto writer = engine::SafetensorsWriter::create(question_.output, specs);
        for (const Tensor* tensor : tensors) {
            std::vector<std::byte> host(tensor->view().bytes());
            context_.download(tensor->view().data, host.data(), host.size());
            writer->write(host.data(), host.size());
        }
        writer->finish();
    }

    json report(double forward, const std::optional<double>& backward) {
        const double flops = 4 * kernels::computedElements(forward_) * static_cast<double>(in_.q.shape[3]);
        const auto rate = [&](double seconds, double work) {
            return seconds > 0 ? json(work / seconds * 1e-12) : json();
        };
        json out = {{"backend", kernels::backendName(context_.backend())},
                    {"device", context_.traits().name},
                    {"dtype", kernels::dtypeName(in_.q.dtype)},
                    {"batch", in_.q.shape[0]},
                    {"heads", in_.q.shape[1]},
                    {"kv_heads", in_.k.shape[1]},
                    {"q_len", in_.q.shape[2]},
                    {"kv_len", in_.k.shape[2]},
                    {"head_dim", in_.q.shape[3]},
                    {"forward_flops", flops},
                    {"forward_ms", forward * 1e3},
                    {"forward_tflops", rate(forward, flops)},
                    {"backward_ms", backward ? json(*backward * 1e3) : json()},
                    {"backward_tflops", backward ? rate(*backward, flops * 2.5) : json()}};
        if (blocks_.has_value()) {
            out["block_size"] = question_.blockSize;
            out["block_sparsity"] = blocks_->blockSparsity();
            out["full_share"] = blocks_->fullShare();
            out["metadata_bytes"] = blocks_->metadataBytes();
            out["build_seconds"] = buildSeconds_;
        }
        json notes = json::array();
        for (const Loaded* loaded : {&score_, &mask_}) {
            for (const std::string& note : loaded->mod.notes) {
                notes.push_back(note);
            }
        }
        out["notes"] = std::move(notes);
        return out;
    }

    const AttentionQuestion& question_;
    base::StopToken stop_;
    kernels::Context context_;
    engine::CapturedTensors captured_;
    Inputs in_;
    Loaded score_, mask_;
    std::optional<kernels::BlockMask> blocks_;
    double buildSeconds_ = 0;
    Tensor q_, k_, v_, sinks_, out_, lse_, scratch_;
    Tensor gradOut_, dq_, dk_, dv_, dSinks_, backwardScratch_;
    std::vector<Tensor> dCaptures_;
    kernels::FlexAttention forward_;
    kernels::FlexAttentionBackward backward_;
};

} // namespace

RandomAttention parseRandomAttention(const std::string& text) {
    std::array<std::int64_t, 5> numbers{};
    std::size_t begin = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::size_t end = i + 1 < numbers.size() ? text.find(',', begin) : text.size();
        const std::string part = end == std::string::npos ? "" : text.substr(begin, end - begin);
        const bool digits = !part.empty() && part.size() <= 9 &&
                            std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (!digits || std::stoll(part) == 0) {
            throw base::BadInput(
                fmt::format("--random: \"{}\" must be B,H,HKV,S,D: five positive integers, as 2,16,4,4096,64", text));
        }
        numbers[i] = std::stoll(part);
        begin = end + 1;
    }
    return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

json attentionReport(const AttentionQuestion& question, const base::StopToken& stop) {
    return AttentionRun(question, stop).run();
}

} // namespace vitrine::app
