// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/run_setup.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "engine/quant/format_options.h"
#include "engine/training/adapters/adapter_weights.h"
#include "engine/workload/common/rank_metrics.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"
#include "kernels/context/context.h"
#include "kernels/context/context_options.h"
#include "kernels/context/cpu_context.h"
#include "kernels/cuda/cuda_options.h"
#include "kernels/cuda/jit/kernel_library.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

kernels::DType dtypeNamed(const std::string& name) {
    return name == "float32" ? kernels::DType::F32
           : name == "fp8"   ? kernels::DType::F8E4M3
           : name == "int8"  ? kernels::DType::I8
                             : kernels::DType::BF16;
}

kernels::ProfileLevel profileLevel(const std::string& name) {
    if (name == "off") {
        return kernels::ProfileLevel::Off;
    }
    return name == "full" ? kernels::ProfileLevel::Full : kernels::ProfileLevel::Light;
}

/// auto leaves the context's own choice.
std::optional<kernels::SimdLevel> simdOf(const Run& run) {
    const std::string asked = run.spec.text("simd");
    for (const auto level : {kernels::SimdLevel::Scalar, kernels::SimdLevel::Avx2, kernels::SimdLevel::Avx512}) {
        if (asked == kernels::simdName(level)) {
            return level;
        }
    }
    return std::nullopt;
}

kernels::ContextOptions contextOptions(const Run& run, base::TraceSink* trace) {
    kernels::ContextOptions options;
    options.threads = static_cast<int>(run.spec.integer("threads"));
    options.memory.deviceBudget = run.spec.maybeBytes("vram_budget").value_or(0);
    options.memory.hostBudget = run.spec.maybeBytes("host_budget").value_or(0);
    options.profile = profileLevel(run.spec.text("profile"));
    options.sink = trace;
    options.clock = run.sinks.clock;
    options.stop = run.stop;
    options.kept = run.sinks.kept;
    options.exactRows = run.spec.has("exact") && run.spec.flag("exact");
    return options;
}

kernels::CudaOptions cudaOptions(const Run& run) {
    kernels::CudaOptions options;
    options.device = static_cast<int>(run.spec.integer("device"));
    options.kernelPacks = run.spec.texts("kernel_pack");
    for (const std::string& pair : run.spec.texts("kernel")) {
        const std::size_t equals = pair.find('=');
        if (equals == 0 || equals == std::string::npos || equals + 1 == pair.size()) {
            throw base::BadInput("kernel: \"" + pair + "\" must be OP=VARIANT");
        }
        options.kernelOverrides.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    }
    return options;
}

/// Of a run on the CPU: what names another device is an error, what could only be ignored is said.
void refuseGpuOptions(const Experiment& spec) {
    if (spec.integer("device") != 0) {
        const std::string why = kernels::whyNoCuda();
        throw base::BadInput(
            fmt::format("device: there is no GPU {} for this run, which is on the CPU{}; leave device out",
                        spec.integer("device"), why.empty() ? "" : " (" + why + ")"));
    }
    for (const char* key : {"kernel", "kernel_pack"}) {
        if (!spec.texts(key).empty()) {
            base::logWarning(
                fmt::format("{}: kernels are chosen on a GPU only; this run on the CPU ignores it", optionFlag(key)));
        }
    }
}

/// Where planned times come from, in words.
std::string_view timesFrom(kernels::RatesFrom rates) {
    switch (rates) {
    case kernels::RatesFrom::Shipped:
        return "measured on this kind of device";
    case kernels::RatesFrom::Scaled:
        return "measured on a device like this one, scaled";
    case kernels::RatesFrom::ThisMachine:
        return "measured on this machine";
    case kernels::RatesFrom::Both:
        return "measured on this machine and on this kind of device";
    case kernels::RatesFrom::Profile:
        break;
    }
    return "data sheet";
}

/// Which part of a plan's time is a guess, and of which ops. Small parts change no plan.
void addTimeDoubts(Json& metrics, const kernels::PricedTime& priced) {
    constexpr double kSmallest = 0.01;
    constexpr std::size_t kMostOps = 4;
    const auto add = [&](base::TimeNs time, std::vector<std::string_view> ops, const ResultField& share,
                         const ResultField& names) {
        const double part = priced.ops > 0 ? static_cast<double>(time) / static_cast<double>(priced.ops) : 0;
        if (part >= kSmallest) {
            ops.resize(std::min(ops.size(), kMostOps));
            metrics[share.key] = part;
            metrics[names.key] = fmt::format("{}", fmt::join(ops, ", "));
        }
    };
    add(priced.far, priced.farOps, result::kExtrapolatedShare, result::kExtrapolatedOps);
    add(priced.sheet, priced.sheetOps, result::kDataSheetShare, result::kDataSheetOps);
}

} // namespace

std::uint64_t Run::seed() const {
    return static_cast<std::uint64_t>(spec.integer("seed"));
}

std::int64_t Run::repeats(std::int64_t unset) const {
    return spec.maybeInteger("repeat").value_or(unset);
}

kernels::Backend backendOf(const Experiment& experiment) {
    const std::string backend = experiment.text("backend");
    if (experiment.isPlan() || backend == "meta") {
        return kernels::Backend::Meta;
    }
    if (backend != "auto") {
        return backend == "cuda" ? kernels::Backend::Cuda : kernels::Backend::Cpu;
    }
    const auto prefersCpu = experiment.workload().prefersCpu;
    // Another device's allocations are rehearsed on the CPU.
    const bool cpu = experiment.has("device_profile") || (prefersCpu != nullptr && prefersCpu(experiment)) ||
                     !kernels::whyNoCuda().empty();
    return cpu ? kernels::Backend::Cpu : kernels::Backend::Cuda;
}

kernels::DeviceTraits profileTraits(const Experiment& experiment, std::string* name) {
    std::string profile = experiment.text("device_profile");
    if (profile.empty()) {
        const std::vector<kernels::CudaDeviceInfo> devices = kernels::cudaDevices();
        profile = devices.empty() ? std::string() : kernels::profileOfDevice(devices.front().name);
    }
    if (profile.empty()) {
        profile = "h100-80gb";
    }
    if (name != nullptr) {
        *name = profile;
    }
    return kernels::loadDeviceProfile(profile);
}

kernels::DeviceTraits planTraits(const Run& run, std::string* name) {
    if (run.spec.text("backend") == "cpu" && !run.spec.has("device_profile")) {
        kernels::DeviceTraits traits = kernels::cpuTraits(static_cast<int>(run.spec.integer("threads")));
        if (name != nullptr) {
            *name = traits.id;
        }
        return traits;
    }
    return profileTraits(run.spec, name);
}

namespace {

kernels::ContextOptions planOptions(const Run& run, base::TraceSink* trace, bool bounded) {
    kernels::ContextOptions options = contextOptions(run, trace);
    if (!bounded) {
        options.memory.deviceBudget = std::uint64_t{1} << 50;
    }
    options.backend = kernels::Backend::Meta;
    options.traits = planTraits(run, nullptr);
    if (run.spec.has("expert_ranks") && run.spec.integer("expert_ranks") > 1) {
        options.traits.links.ranks = static_cast<int>(run.spec.integer("expert_ranks"));
        if (!options.traits.links.known()) {
            throw base::BadInput(
                fmt::format("expert_ranks: the device profile {} says nothing of links between devices; "
                            "give its link_bandwidth, link_seconds, node_link_bandwidth, "
                            "node_link_seconds and node_devices",
                            options.traits.id));
        }
    }
    return options;
}

} // namespace

RunDevices makePlanContext(const Run& run, base::TraceSink* trace, bool bounded, int rank) {
    return {planOptions(run, trace, bounded), parallelShape(run.spec), rank};
}

RunDevices makeContext(const Run& run) {
    const kernels::Backend backend = backendOf(run.spec);
    const ParallelShape shape = parallelShape(run.spec);
    checkDevices(run.spec, backend == kernels::Backend::Cpu);
    if (backend == kernels::Backend::Meta) {
        return {planOptions(run, run.sinks.trace, true), shape};
    }
    kernels::ContextOptions options = contextOptions(run, run.sinks.trace);
    if (backend == kernels::Backend::Cuda) {
        if (shape.ranks() > 1) {
            throw base::Unsupported("tp, ep: several ranks run on the CPU and on Meta so far; give --backend cpu or "
                                    "--backend meta");
        }
        options.backend = kernels::Backend::Cuda;
        options.foldSteps = true; // decode steps become graphs
        options.cuda = cudaOptions(run);
        return {options, shape};
    }
    refuseGpuOptions(run.spec);
    options.backend = kernels::Backend::Cpu;
    if (run.spec.has("device_profile")) {
        // The CPU rehearses another device's allocations.
        options.traits = planTraits(run, nullptr);
    }
    options.simd = simdOf(run);
    return {options, shape};
}

ModelSource openSource(const Run& run) {
    ModelSource source = openModel(run.spec.text("model"), run.spec.pairs("set"));
    const std::string adapter = run.spec.text("adapter");
    return adapter.empty() ? source : withAdapterWeights(std::move(source), AdapterFile::open(adapter));
}

ModelOptions modelOptions(const Run& run, kernels::Context& context, const std::string& weights) {
    ModelOptions options;
    options.dequantize = weights == "dequantized";
    options.pack = formatNamed(weights);
    // A plan for the CPU prices what the CPU would do.
    const bool cpu = context.can().runsOnHost || run.spec.text("backend") == "cpu";
    options.computeDType = run.spec.has("dtype") ? dtypeNamed(run.spec.text("dtype"))
                           : cpu                 ? kernels::DType::F32
                                                 : kernels::DType::BF16;
    options.seed = run.seed();
    options.parallel = parallelShape(run.spec);
    return options;
}

GenerateOptions generateOptions(const Run& run, const ModelOptions& model) {
    GenerateOptions options;
    const std::string cache = run.spec.text("cache");
    options.cache.kind = cache == "static"  ? KvCacheKind::Static
                         : cache == "paged" ? KvCacheKind::Paged
                                            : KvCacheKind::Dynamic;
    options.cache.dtype = run.spec.has("kv_dtype") ? dtypeNamed(run.spec.text("kv_dtype")) : model.computeDType;
    options.cache.pageTokens = run.spec.integer("page_size");
    options.cache.slidingSaves = run.spec.flag("sliding_cache");
    options.prefillChunk = run.spec.integer("prefill_chunk");
    options.topLogprobs = static_cast<std::int32_t>(run.spec.integer("logprobs"));
    return options;
}

void addContextMetrics(const Run& run, kernels::Context& context) {
    Json& metrics = run.metrics;
    metrics[result::kModel.key] = run.spec.text("model");
    if (run.spec.has("weights")) {
        metrics[result::kWeights.key] = run.spec.text("weights");
    }
    metrics[result::kDtype.key] = kernels::dtypeName(modelOptions(run, context, "").computeDType);
    metrics[result::kBackend.key] = kernels::backendName(context.backend());
    metrics[result::kTimeBase.key] = context.clock().timeBase() == base::TimeBase::Virtual ? "virtual" : "monotonic";
    metrics[result::kDevice.key] = context.traits().name;
    if (context.can().runsOnHost) {
        metrics[result::kThreads.key] = context.hostPool().threads();
        metrics[result::kSimd.key] = kernels::simdName(context.simd());
    }
    if (context.can().virtualTime || run.spec.has("device_profile")) {
        std::string profile;
        planTraits(run, &profile);
        metrics[result::kDeviceProfile.key] = profile;
    }
    if (context.can().virtualTime) {
        metrics[result::kTimesFrom.key] = timesFrom(context.traits().ratesFrom);
    }
}

Json categoryJson(const base::CategoryBytes& bytes) {
    Json out = Json::object();
    for (int i = 0; i < base::kCategoryCount; ++i) {
        out[std::string(base::categoryName(static_cast<base::MemoryCategory>(i)))] = bytes[static_cast<std::size_t>(i)];
    }
    return out;
}

Json finishCountsJson(const FinishCounts& counts) {
    Json out = Json::object();
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] > 0) {
            out[finishReasonName(static_cast<FinishReason>(i))] = counts[i];
        }
    }
    return out;
}

void addLoadMetrics(Json& metrics, const LoadReport& report) {
    metrics[result::kLoadSeconds.key] = report.seconds;
    metrics[result::kBytesRead.key] = report.bytesRead;
    metrics[result::kResidentBytes.key] = report.residentBytes;
    if (report.kept) {
        metrics[result::kWeightsKept.key] = true;
    }
}

void addMemoryMetrics(Json& metrics, kernels::Context& context) {
    const kernels::MemoryStatistics& statistics = context.memory().statistics();
    metrics[result::kPeakBytes.key] = statistics.peak;
    metrics[result::kPeakByCategory.key] = categoryJson(statistics.peakByCategory);
    metrics[result::kMaxByCategory.key] = categoryJson(statistics.maxByCategory);
    metrics[result::kPeakReservedBytes.key] = statistics.peakReserved;
    metrics[result::kHostPeakBytes.key] = context.memory().hostStatistics().peak;
    metrics[result::kBudgetBytes.key] = context.memory().budget();
}

void addKernelMetrics(Json& metrics, kernels::Context& context) {
    const kernels::KernelLibrary* const library = context.kernelLibrary();
    if (library == nullptr) {
        return;
    }
    metrics[result::kKernelCompileSeconds.key] = library->waitedSeconds();
    Json rows = Json::array();
    double compiling = 0;
    int compiled = 0;
    for (const kernels::KernelUse& use : library->uses()) {
        compiling += use.compileSeconds;
        compiled += use.compileSeconds > 0 ? 1 : 0;
        Json row = {{"family", use.family},
                    {"variant", use.variant},
                    {"pack", use.pack},
                    {"arch", use.arch},
                    {"specialization", use.specialization},
                    {"reason", use.reason},
                    {"origin", use.origin},
                    {"compile_seconds", use.compileSeconds},
                    {"calls", use.calls}};
        // A variant of several launches is as heavy as its heaviest.
        kernels::KernelResources most;
        std::int64_t cubinBytes = 0;
        Json entries = Json::array();
        for (const kernels::KernelResources& resources : use.kernels) {
            entries.push_back(resources.entry);
            most.registers = std::max(most.registers, resources.registers);
            most.spillBytes = std::max(most.spillBytes, resources.spillBytes);
            most.staticShared = std::max(most.staticShared, resources.staticShared);
            cubinBytes = std::max(cubinBytes, resources.cubinBytes);
        }
        row["entries"] = std::move(entries);
        row["registers"] = most.registers;
        row["spill_bytes"] = most.spillBytes;
        row["shared_bytes"] = most.staticShared;
        row["cubin_bytes"] = cubinBytes;
        rows.push_back(std::move(row));
    }
    metrics[result::kKernelsCompiled.key] = compiled;
    metrics[result::kKernelCompilerSeconds.key] = compiling;
    metrics[result::kKernels.key] = std::move(rows);
}

void runMeasured(const Run& run, kernels::Context& context, const std::function<void()>& work) {
    const auto addWhatIsKnown = [&] {
        addMemoryMetrics(run.metrics, context);
        addKernelMetrics(run.metrics, context);
        addTimeDoubts(run.metrics, context.pricedTime());
        addRankMetrics(run.metrics, context);
    };
    addContextMetrics(run, context);
    try {
        work();
    } catch (...) {
        addWhatIsKnown();
        throw;
    }
    addWhatIsKnown();
}

double median(std::vector<double> values) {
    if (values.empty()) {
        return 0;
    }
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void addRepeats(nlohmann::json& metrics, const std::string& path, const std::vector<double>& values) {
    if (values.size() > 1) {
        metrics[result::kRepeats.key][path] = values;
    }
}

std::vector<double> secondsOfRuns(kernels::Context& context, std::int64_t times,
                                  const std::function<void(std::int64_t)>& work) {
    // Where the context runs ahead nothing waits for the device between two runs.
    std::vector<kernels::Mark> marks;
    marks.push_back(context.mark());
    for (std::int64_t i = 0; i < times; ++i) {
        work(i);
        marks.push_back(context.mark());
    }
    std::vector<double> seconds;
    for (std::size_t i = 1; i < marks.size(); ++i) {
        seconds.push_back(marks[i].secondsSince(marks[i - 1]));
    }
    return seconds;
}

} // namespace vitrine::engine
