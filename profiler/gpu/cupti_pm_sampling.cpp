// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// PM sampling through CUPTI. All metrics are added in one call: each further call would get passes of its own, and
// sampling takes one pass.

#include <algorithm>
#include <cmath>
#include <cuda.h>
#include <fmt/format.h>
#include <limits>
#include <utility>
#include <vector>

#include "profiler/gpu/cupti_api.h"
#include "profiler/gpu/pm_sampling.h"
#include "profiler/gpu/readiness.h"

namespace vitrine::profiler {

namespace {

// The device fills it at about 32 KiB a sample (H200), and the collecting thread may be late.
constexpr std::size_t kSampleBytes = std::size_t{32} << 10;
constexpr std::size_t kLeastBuffer = std::size_t{64} << 20;
constexpr base::TimeNs kBufferTime = 1'000'000'000;
// An image is cleared before each use, so it should not be large; one that gets full makes samples without a length.
constexpr base::TimeNs kImageTime = 200'000'000; ///< several of collect()'s periods
constexpr base::TimeNs kMinImageSamples = 128;
constexpr base::TimeNs kMaxImageSamples = 4096; ///< 127 MB of host memory
constexpr base::TimeNs kShortest = 50'000;
constexpr base::TimeNs kLongest = 1'000'000'000;
constexpr double kSystemClock = 1.6e9; ///< about; chips that trigger by clocks vary it

struct Metric {
    DeviceCounter counter;
    const char* name;
    double factor; ///< to shares; of bytes: 1
    bool bytes;
};

/// Best first for each counter. Chips differ in what they have and in what fits one pass.
constexpr std::array<Metric, 10> kMetrics{{
    {DeviceCounter::DramRead, "dram__bytes_read.sum", 1, true},
    {DeviceCounter::DramWrite, "dram__bytes_write.sum", 1, true},
    {DeviceCounter::SmActive, "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", 1e-2, false},
    {DeviceCounter::TensorActive, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 1e-2, false},
    {DeviceCounter::TensorActive, "sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed", 1e-2,
     false},
    {DeviceCounter::TensorActive, "sm__inst_executed_pipe_tensor_realtime.avg.pct_of_peak_sustained_elapsed", 1e-2,
     false},
    {DeviceCounter::WarpsActive, "tpc__warps_active_shader_cs_realtime.avg.pct_of_peak_sustained_elapsed", 1e-2, false},
    {DeviceCounter::WarpsActive, "sm__warps_active.avg.pct_of_peak_sustained_active", 1e-2, false},
    {DeviceCounter::SmActive, "gr__cycles_active.sum.pct_of_peak_sustained_elapsed", 1e-2, false},
    {DeviceCounter::DramWrite, "dram__write_sectors.sum", 32, true},
}};

/// Keeps what a call returned; whether it went wrong.
bool failed(CUptiResult& kept, CUptiResult code) {
    kept = code;
    return code != CUPTI_SUCCESS;
}

template <class Params> Params zeroed(std::size_t size) {
    Params params{};
    params.structSize = size;
    return params;
}

/// A host object: metric names to a configuration, and counter data to values.
class HostObject {
public:
    HostObject(const CuptiApi& api, const char* chip, const std::vector<std::uint8_t>& available) : api_(api) {
        auto params = zeroed<CUpti_Profiler_Host_Initialize_Params>(CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE);
        params.profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING;
        params.pChipName = chip;
        params.pCounterAvailabilityImage = available.data();
        code_ = api_.cuptiProfilerHostInitialize(&params);
        object_ = code_ == CUPTI_SUCCESS ? params.pHostObject : nullptr;
    }
    HostObject(const HostObject&) = delete; // owns a handle
    HostObject& operator=(const HostObject&) = delete;
    ~HostObject() {
        if (object_ != nullptr) {
            auto params =
                zeroed<CUpti_Profiler_Host_Deinitialize_Params>(CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE);
            params.pHostObject = object_;
            api_.cuptiProfilerHostDeinitialize(&params);
        }
    }

    CUptiResult code() const { return code_; }
    CUpti_Profiler_Host_Object* get() const { return object_; }

    /// The configuration of these metrics when they fit one pass; empty otherwise.
    std::vector<std::uint8_t> configure(std::vector<const char*> names) {
        if (object_ == nullptr) {
            return {};
        }
        auto add = zeroed<CUpti_Profiler_Host_ConfigAddMetrics_Params>(
            CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE);
        add.pHostObject = object_;
        add.ppMetricNames = names.data();
        add.numMetrics = names.size();
        auto size = zeroed<CUpti_Profiler_Host_GetConfigImageSize_Params>(
            CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE);
        size.pHostObject = object_;
        if (failed(code_, api_.cuptiProfilerHostConfigAddMetrics(&add)) ||
            failed(code_, api_.cuptiProfilerHostGetConfigImageSize(&size))) {
            return {};
        }
        std::vector<std::uint8_t> image(size.configImageSize);
        auto get =
            zeroed<CUpti_Profiler_Host_GetConfigImage_Params>(CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE);
        get.pHostObject = object_;
        get.pConfigImage = image.data();
        get.configImageSize = image.size();
        auto passes =
            zeroed<CUpti_Profiler_Host_GetNumOfPasses_Params>(CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE);
        passes.pConfigImage = image.data();
        passes.configImageSize = image.size();
        if (failed(code_, api_.cuptiProfilerHostGetConfigImage(&get)) ||
            failed(code_, api_.cuptiProfilerHostGetNumOfPasses(&passes)) || passes.numOfPasses != 1) {
            return {};
        }
        return image;
    }

private:
    const CuptiApi& api_;
    CUptiResult code_ = CUPTI_SUCCESS;
    CUpti_Profiler_Host_Object* object_ = nullptr;
};

class PmSampler final : public CounterSampler {
public:
    PmSampler(const CuptiApi& api, int ordinal) : api_(api), ordinal_(static_cast<std::size_t>(ordinal)) {}
    PmSampler(const PmSampler&) = delete; // owns a handle
    PmSampler& operator=(const PmSampler&) = delete;
    ~PmSampler() override;

    /// One sentence when it does not start.
    std::string start(base::TimeNs interval);
    void collect(const std::function<void(const CounterSampleRow&)>& take) override;
    std::uint64_t lost() const override { return lost_; }

private:
    bool tryMetrics(const std::vector<Metric>& metrics, CUptiResult& code);
    CUptiResult chooseMetrics();
    CUptiResult enable(base::TimeNs interval);
    CUptiResult clearImage();
    CounterSampleRow row(std::size_t index, std::uint64_t& deviceEnd);

    const CuptiApi& api_;
    std::size_t ordinal_;
    std::string chip_;
    std::vector<std::uint8_t> available_, config_, image_;
    std::unique_ptr<HostObject> host_;
    std::vector<Metric> metrics_;
    std::vector<const char*> names_;
    CUpti_PmSampling_Object* sampling_ = nullptr;
    bool running_ = false;
    bool first_ = true;
    ClockFit fit_;
    std::uint64_t lost_ = 0;
};

PmSampler::~PmSampler() {
    if (running_) {
        auto stop = zeroed<CUpti_PmSampling_Stop_Params>(CUpti_PmSampling_Stop_Params_STRUCT_SIZE);
        stop.pPmSamplingObject = sampling_;
        api_.cuptiPmSamplingStop(&stop);
    }
    if (sampling_ != nullptr) {
        auto disable = zeroed<CUpti_PmSampling_Disable_Params>(CUpti_PmSampling_Disable_Params_STRUCT_SIZE);
        disable.pPmSamplingObject = sampling_;
        api_.cuptiPmSamplingDisable(&disable);
    }
}

/// Takes these metrics when they fit one pass together. A host object keeps what was added, so each try makes one; that
/// takes most of a second.
bool PmSampler::tryMetrics(const std::vector<Metric>& metrics, CUptiResult& code) {
    std::vector<const char*> names;
    names.reserve(metrics.size());
    for (const Metric& metric : metrics) {
        names.push_back(metric.name);
    }
    auto host = std::make_unique<HostObject>(api_, chip_.c_str(), available_);
    std::vector<std::uint8_t> config = host->configure(names);
    code = host->code();
    if (config.empty()) {
        return false;
    }
    metrics_ = metrics;
    names_ = std::move(names);
    config_ = std::move(config);
    host_ = std::move(host);
    return true;
}

CUptiResult PmSampler::chooseMetrics() {
    const auto known = [](const std::vector<Metric>& metrics, const Metric& metric) {
        return std::ranges::any_of(metrics, [&](const Metric& m) { return m.counter == metric.counter; });
    };
    // The best of each, which Hopper has in one pass.
    std::vector<Metric> wanted;
    for (const Metric& metric : kMetrics) {
        if (!known(wanted, metric)) {
            wanted.push_back(metric);
        }
    }
    CUptiResult code = CUPTI_SUCCESS;
    if (tryMetrics(wanted, code)) {
        return CUPTI_SUCCESS;
    }
    for (const Metric& metric : kMetrics) {
        if (!known(metrics_, metric)) {
            std::vector<Metric> more = metrics_;
            more.push_back(metric);
            tryMetrics(more, code);
        }
    }
    return !metrics_.empty() ? CUPTI_SUCCESS : code == CUPTI_SUCCESS ? CUPTI_ERROR_NOT_SUPPORTED : code;
}

CUptiResult PmSampler::clearImage() {
    auto clear = zeroed<CUpti_PmSampling_CounterDataImage_Initialize_Params>(
        CUpti_PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE);
    clear.pPmSamplingObject = sampling_;
    clear.counterDataSize = image_.size();
    clear.pCounterData = image_.data();
    return api_.cuptiPmSamplingCounterDataImageInitialize(&clear);
}

CUptiResult PmSampler::enable(base::TimeNs interval) {
    auto on = zeroed<CUpti_PmSampling_Enable_Params>(CUpti_PmSampling_Enable_Params_STRUCT_SIZE);
    on.deviceIndex = ordinal_;
    CUptiResult code = api_.cuptiPmSamplingEnable(&on);
    if (code != CUPTI_SUCCESS) {
        return code;
    }
    sampling_ = on.pPmSamplingObject;
    auto set = zeroed<CUpti_PmSampling_SetConfig_Params>(CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE);
    set.pPmSamplingObject = sampling_;
    set.configSize = config_.size();
    set.pConfig = config_.data();
    set.hardwareBufferSize = std::max(kLeastBuffer, static_cast<std::size_t>(kBufferTime / interval) * kSampleBytes);
    set.samplingInterval = static_cast<std::uint64_t>(interval);
    set.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
    set.hwBufferAppendMode = CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST;
    if (failed(code, api_.cuptiPmSamplingSetConfig(&set))) {
        // Turing and A100 count clocks instead of nanoseconds.
        set.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL;
        set.samplingInterval = static_cast<std::uint64_t>(static_cast<double>(interval) * 1e-9 * kSystemClock);
        code = api_.cuptiPmSamplingSetConfig(&set);
    }
    if (code != CUPTI_SUCCESS) {
        return code;
    }
    auto size =
        zeroed<CUpti_PmSampling_GetCounterDataSize_Params>(CUpti_PmSampling_GetCounterDataSize_Params_STRUCT_SIZE);
    size.pPmSamplingObject = sampling_;
    size.pMetricNames = names_.data();
    size.numMetrics = names_.size();
    size.maxSamples = static_cast<std::uint32_t>(std::clamp(kImageTime / interval, kMinImageSamples, kMaxImageSamples));
    if (failed(code, api_.cuptiPmSamplingGetCounterDataSize(&size))) {
        return code;
    }
    image_.resize(size.counterDataSize);
    if (failed(code, clearImage())) {
        return code;
    }
    auto start = zeroed<CUpti_PmSampling_Start_Params>(CUpti_PmSampling_Start_Params_STRUCT_SIZE);
    start.pPmSamplingObject = sampling_;
    code = api_.cuptiPmSamplingStart(&start);
    running_ = code == CUPTI_SUCCESS;
    return code;
}

std::string PmSampler::start(base::TimeNs interval) {
    auto initialize = zeroed<CUpti_Profiler_Initialize_Params>(CUpti_Profiler_Initialize_Params_STRUCT_SIZE);
    auto chip = zeroed<CUpti_Device_GetChipName_Params>(CUpti_Device_GetChipName_Params_STRUCT_SIZE);
    chip.deviceIndex = ordinal_;
    auto available = zeroed<CUpti_PmSampling_GetCounterAvailability_Params>(
        CUpti_PmSampling_GetCounterAvailability_Params_STRUCT_SIZE);
    available.deviceIndex = ordinal_;
    CUptiResult code = api_.cuptiProfilerInitialize(&initialize);
    if (code != CUPTI_SUCCESS || failed(code, api_.cuptiDeviceGetChipName(&chip)) ||
        failed(code, api_.cuptiPmSamplingGetCounterAvailability(&available))) {
        return api_.describe(code);
    }
    chip_ = chip.pChipName;
    available_.resize(available.counterAvailabilityImageSize);
    available.pCounterAvailabilityImage = available_.data();
    if (failed(code, api_.cuptiPmSamplingGetCounterAvailability(&available))) {
        return api_.describe(code);
    }
    if (failed(code, chooseMetrics())) {
        return fmt::format("the chip {} has none of the counters in one pass: {}", chip_, api_.describe(code));
    }
    code = enable(std::clamp(interval, kShortest, kLongest));
    return code == CUPTI_SUCCESS ? std::string() : api_.describe(code);
}

CounterSampleRow PmSampler::row(std::size_t index, std::uint64_t& deviceEnd) {
    CounterSampleRow out;
    out.values.fill(std::numeric_limits<double>::quiet_NaN());
    auto info = zeroed<CUpti_PmSampling_CounterData_GetSampleInfo_Params>(
        CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE);
    info.pPmSamplingObject = sampling_;
    info.pCounterDataImage = image_.data();
    info.counterDataImageSize = image_.size();
    info.sampleIndex = index;
    std::array<double, kMetrics.size()> values{};
    auto evaluate = zeroed<CUpti_Profiler_Host_EvaluateToGpuValues_Params>(
        CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE);
    evaluate.pHostObject = host_->get();
    evaluate.pCounterDataImage = image_.data();
    evaluate.counterDataImageSize = image_.size();
    evaluate.ppMetricNames = names_.data();
    evaluate.numMetrics = names_.size();
    evaluate.rangeIndex = index;
    evaluate.pMetricValues = values.data();
    deviceEnd = 0;
    if (api_.cuptiPmSamplingCounterDataGetSampleInfo(&info) != CUPTI_SUCCESS ||
        api_.cuptiProfilerHostEvaluateToGpuValues(&evaluate) != CUPTI_SUCCESS ||
        info.endTimestamp <= info.startTimestamp) {
        ++lost_;
        return out;
    }
    deviceEnd = info.endTimestamp;
    const auto length = static_cast<base::TimeNs>(info.endTimestamp - info.startTimestamp);
    out.begin = -length; // of the end, which the caller places
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
        const double scaled = values[i] * metrics_[i].factor;
        out.values[static_cast<std::size_t>(metrics_[i].counter)] =
            metrics_[i].bytes ? scaled * 1e9 / static_cast<double>(length) : soundShare(scaled);
    }
    return out;
}

void PmSampler::collect(const std::function<void(const CounterSampleRow&)>& take) {
    for (bool more = true; more;) {
        auto decode = zeroed<CUpti_PmSampling_DecodeData_Params>(CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE);
        decode.pPmSamplingObject = sampling_;
        decode.pCounterDataImage = image_.data();
        decode.counterDataImageSize = image_.size();
        // Before: decoding takes milliseconds, in which the device does not hand over later samples.
        const base::TimeNs seen = base::monotonicNs();
        const CUptiResult code = api_.cuptiPmSamplingDecodeData(&decode);
        lost_ += decode.overflow != 0 || code == CUPTI_ERROR_OUT_OF_MEMORY ? 1 : 0;
        auto info =
            zeroed<CUpti_PmSampling_GetCounterDataInfo_Params>(CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE);
        info.pCounterDataImage = image_.data();
        info.counterDataImageSize = image_.size();
        if (code != CUPTI_SUCCESS || api_.cuptiPmSamplingGetCounterDataInfo(&info) != CUPTI_SUCCESS) {
            return;
        }
        std::vector<std::pair<std::uint64_t, CounterSampleRow>> rows;
        for (std::size_t i = 0; i < info.numCompletedSamples; ++i) {
            std::uint64_t deviceEnd = 0;
            CounterSampleRow sample = row(i, deviceEnd);
            if (deviceEnd != 0) {
                rows.emplace_back(deviceEnd, sample);
            }
        }
        if (!rows.empty()) {
            fit_.see(rows.back().first, seen);
        }
        for (auto& [deviceEnd, sample] : rows) {
            if (std::exchange(first_, false)) {
                continue; // it reaches back to when the device was last reset
            }
            sample.end = fit_.hostTime(deviceEnd);
            sample.begin += sample.end;
            take(sample);
        }
        more = decode.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
        if (clearImage() != CUPTI_SUCCESS) {
            return;
        }
    }
}

} // namespace

std::unique_ptr<CounterSampler> openCounterSampler(int ordinal, base::TimeNs interval, std::string& why) {
    why = whyNoCupti(true);
    if (!why.empty()) {
        return nullptr;
    }
    auto sampler = std::make_unique<PmSampler>(*CuptiApi::find(), ordinal);
    why = sampler->start(interval);
    if (!why.empty()) {
        return nullptr;
    }
    return sampler;
}

} // namespace vitrine::profiler
