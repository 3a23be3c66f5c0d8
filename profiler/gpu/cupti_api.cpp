// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/cupti_api.h"

#include <fmt/format.h>
#include <vector>

#include "base/shared_library.h"
#include "profiler/gpu/readiness.h"

namespace vitrine::profiler {

namespace {

/// Older ones write records of another layout.
constexpr std::uint32_t kOldestVersion = 130000;

struct Loaded {
    CuptiApi api;
    std::string missing;
};

Loaded load() {
    Loaded out;
    const std::vector<std::string> names{"libcupti.so.13", "libcupti.so"};
    const base::SharedLibrary library = base::SharedLibrary::find(names);
    if (!library.isOpen()) {
        out.missing = "CUPTI of CUDA 13 was not found; install the CUDA toolkit, or: pip install nvidia-cuda-cupti" +
                      (library.error().empty() ? "" : " (" + library.error() + ")");
        return out;
    }
    CuptiApi& api = out.api;
    api.path = library.path();
#define VITRINE_LOAD(name)                                                                                             \
    api.name = reinterpret_cast<decltype(&::name)>(library.symbol(#name));                                             \
    if (api.name == nullptr) {                                                                                         \
        out.missing = fmt::format("{}: lacks {}; install CUPTI of CUDA 13", api.path, #name);                          \
        return out;                                                                                                    \
    }
    VITRINE_CUPTI_FUNCTIONS(VITRINE_LOAD)
#undef VITRINE_LOAD
    if (api.cuptiGetVersion(&api.version) != CUPTI_SUCCESS || api.version < kOldestVersion) {
        out.missing = fmt::format("{}: its API version is {}, records of {} or later are understood; install CUPTI of "
                                  "CUDA 13",
                                  api.path, api.version, kOldestVersion);
        return out;
    }
    api.samples = true;
#define VITRINE_LOAD(name)                                                                                             \
    api.name = reinterpret_cast<decltype(&::name)>(library.symbol(#name));                                             \
    api.samples = api.samples && api.name != nullptr;
    VITRINE_CUPTI_SAMPLING_FUNCTIONS(VITRINE_LOAD)
#undef VITRINE_LOAD
    return out;
}

const Loaded& loaded() {
    static const Loaded kLoaded = load();
    return kLoaded;
}

} // namespace

const CuptiApi* CuptiApi::find() {
    return loaded().missing.empty() ? &loaded().api : nullptr;
}

const std::string& CuptiApi::whyMissing() {
    return loaded().missing;
}

std::string CuptiApi::describe(CUptiResult code) const {
    switch (code) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
        return "the driver lets only administrators read hardware counters; load its module with "
               "NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return "this virtual GPU may not be profiled; ask its host's administrator to enable profiling for it";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
        return "CUPTI does not profile this virtual GPU";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
        return "hardware counters are not to be had on a part of a GPU (MIG); use a whole one";
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
        return "hardware counters are not to be had under WSL";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
        return "this GPU computes confidentially and may not be profiled";
    case CUPTI_ERROR_CUDA_COMPILER_NOT_COMPATIBLE:
    case CUPTI_ERROR_NOT_COMPATIBLE:
        return "CUPTI does not fit this driver; install a driver of CUDA 13 or later";
    default:
        break;
    }
    const char* text = nullptr;
    if (cuptiGetErrorMessage(code, &text) != CUPTI_SUCCESS || text == nullptr) {
        return fmt::format("CUPTI error {}", static_cast<int>(code));
    }
    return fmt::format("{} (CUPTI error {})", text, static_cast<int>(code));
}

std::string whyNoCupti(bool counters) {
    const CuptiApi* api = CuptiApi::find();
    if (api == nullptr) {
        return CuptiApi::whyMissing();
    }
    return !counters || api->samples
               ? std::string()
               : fmt::format("{}: cannot sample hardware counters; install CUPTI of CUDA 13", api->path);
}

} // namespace vitrine::profiler
