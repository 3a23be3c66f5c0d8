// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/gpu_libraries.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <string_view>

namespace vitrine::app {

namespace {

namespace fs = std::filesystem;

using Symbol = std::function<void*(const char*)>;

struct Wanted {
    std::string_view name;
    std::vector<std::string> sonames; ///< newest first
    std::string_view neededFor;
    std::string_view install;
    std::function<std::string(const Symbol&)> version;
};

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

/// 12040 is 12.4: how the driver, CUPTI and others write versions.
std::string thousands(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

template <class Signature> Signature* as(void* symbol) {
    return reinterpret_cast<Signature*>(symbol);
}

std::string intVersion(const Symbol& symbol, const char* function) {
    int version = 0;
    auto* call = as<int(int*)>(symbol(function));
    return call != nullptr && call(&version) == 0 ? thousands(version) : std::string();
}

std::string nvrtcVersion(const Symbol& symbol) {
    int major = 0;
    int minor = 0;
    auto* call = as<int(int*, int*)>(symbol("nvrtcVersion"));
    return call != nullptr && call(&major, &minor) == 0 ? fmt::format("{}.{}", major, minor) : std::string();
}

std::string cublasLtVersion(const Symbol& symbol) {
    auto* call = as<std::size_t()>(symbol("cublasLtGetVersion"));
    if (call == nullptr) {
        return {};
    }
    const std::size_t version = call();
    // 13.0.0 is 130000, as 12.9.1 is 120901.
    return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string ncclVersion(const Symbol& symbol) {
    int version = 0;
    auto* call = as<int(int*)>(symbol("ncclGetVersion"));
    return call != nullptr && call(&version) == 0
               ? fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100)
               : std::string();
}

std::string nvmlVersion(const Symbol& symbol) {
    auto* start = as<int()>(symbol("nvmlInit_v2"));
    auto* stop = as<int()>(symbol("nvmlShutdown"));
    auto* version = as<int(char*, unsigned)>(symbol("nvmlSystemGetDriverVersion"));
    if (start == nullptr || stop == nullptr || version == nullptr || start() != 0) {
        return {};
    }
    std::array<char, 96> text{};
    const bool known = version(text.data(), static_cast<unsigned>(text.size())) == 0;
    stop();
    return known ? fmt::format("driver {}", text.data()) : std::string();
}

const std::vector<Wanted>& wantedLibraries() {
    static const std::vector<Wanted> kWanted{
        {"libcuda",
         {"libcuda.so.1"},
         "running on an NVIDIA GPU",
         "install the NVIDIA driver",
         [](const Symbol& symbol) { return intVersion(symbol, "cuDriverGetVersion"); }},
        {"NVRTC",
         {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
         "compiling GPU kernels",
         "install the CUDA toolkit, or: pip install nvidia-cuda-nvrtc",
         nvrtcVersion},
        {"cuBLASLt",
         {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
         "dense products on the GPU",
         "install the CUDA toolkit, or: pip install nvidia-cublas",
         cublasLtVersion},
        {"CUPTI",
         {"libcupti.so.13", "libcupti.so.12", "libcupti.so"},
         "device times of GPU kernels",
         "install the CUDA toolkit, or: pip install nvidia-cuda-cupti",
         [](const Symbol& symbol) {
             std::uint32_t version = 0;
             auto* call = as<int(std::uint32_t*)>(symbol("cuptiGetVersion"));
             return call != nullptr && call(&version) == 0 ? fmt::format("API {}", version) : std::string();
         }},
        {"NCCL",
         {"libnccl.so.2"},
         "several GPUs in one run",
         "apt-get install libnccl2, or: pip install nvidia-nccl-cu12",
         ncclVersion},
        {"NVML",
         {"libnvidia-ml.so.1"},
         "clocks, power and the memory of other programs",
         "install the NVIDIA driver",
         nvmlVersion},
    };
    return kWanted;
}

void addToolkit(std::vector<fs::path>& folders, const fs::path& home) {
    for (const char* part : {"lib64", "lib", "targets/x86_64-linux/lib", "extras/CUPTI/lib64"}) {
        folders.push_back(home / part);
    }
}

/// Subfolders of `folder` whose name starts with `prefix`, sorted.
std::vector<fs::path> subfolders(const fs::path& folder, std::string_view prefix) {
    std::vector<fs::path> found;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        if (entry->path().filename().string().starts_with(prefix)) {
            found.push_back(entry->path());
        }
    }
    std::sort(found.begin(), found.end());
    return found;
}

std::vector<fs::path> pipFolders() {
    std::vector<fs::path> packages;
    for (const std::string& root : {environment("VIRTUAL_ENV"), environment("HOME") + "/.local",
                                    std::string("/usr/local"), std::string("/usr")}) {
        if (root.empty()) {
            continue;
        }
        for (const fs::path& python : subfolders(fs::path(root) / "lib", "python3")) {
            packages.push_back(python / "site-packages");
            packages.push_back(python / "dist-packages");
        }
    }
    std::vector<fs::path> folders;
    for (const fs::path& package : packages) {
        for (const fs::path& part : subfolders(package / "nvidia", "")) {
            folders.push_back(part / "lib");
        }
    }
    return folders;
}

/// Folders before the bare soname and after it.
struct SearchPath {
    std::vector<fs::path> before, after;
};

SearchPath searchPath() {
    SearchPath path;
    if (const std::string home = environment("VITRINE_CUDA_HOME"); !home.empty()) {
        path.before.emplace_back(home);
        addToolkit(path.before, home);
    }
    std::error_code error;
    if (const fs::path program = fs::read_symlink("/proc/self/exe", error); !error) {
        path.before.push_back(program.parent_path());
        path.before.push_back(program.parent_path().parent_path() / "lib");
    }
    if (const std::string home = environment("CUDA_HOME"); !home.empty()) {
        addToolkit(path.before, home);
    }
    addToolkit(path.before, "/usr/local/cuda");
    addToolkit(path.before, "/opt/cuda");
    path.after = pipFolders();
    return path;
}

/// An open library. It stays loaded until the process ends: vendor libraries keep memory of their own that unloading
/// would leak, and the engine opens the same ones again.
class OpenLibrary {
public:
    OpenLibrary() = default;
    OpenLibrary(const OpenLibrary&) = delete; // one owner asks for symbols
    OpenLibrary& operator=(const OpenLibrary&) = delete;

    bool open(const std::string& file) {
        handle_ = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
        return handle_ != nullptr;
    }
    void* symbol(const char* name) const { return ::dlsym(handle_, name); }

private:
    void* handle_ = nullptr;
};

bool openFromFolders(OpenLibrary& library, const std::vector<fs::path>& folders, const Wanted& wanted,
                     GpuLibrary& report) {
    for (const fs::path& folder : folders) {
        for (const std::string& soname : wanted.sonames) {
            std::error_code error;
            const fs::path file = folder / soname;
            if (!fs::exists(file, error)) {
                continue;
            }
            if (library.open(file.string())) {
                report.path = file.string();
                return true;
            }
            const char* reason = ::dlerror();
            report.error = reason == nullptr ? file.string() : reason;
        }
    }
    return false;
}

bool openBySoname(OpenLibrary& library, const Wanted& wanted, GpuLibrary& report) {
    for (const std::string& soname : wanted.sonames) {
        if (library.open(soname)) {
            report.path = soname;
            return true;
        }
    }
    return false;
}

void askForDevices(const OpenLibrary& driver, GpuReport& report) {
    auto* start = as<int(unsigned)>(driver.symbol("cuInit"));
    auto* count = as<int(int*)>(driver.symbol("cuDeviceGetCount"));
    auto* get = as<int(int*, int)>(driver.symbol("cuDeviceGet"));
    auto* name = as<int(char*, int, int)>(driver.symbol("cuDeviceGetName"));
    auto* total = as<int(std::size_t*, int)>(driver.symbol("cuDeviceTotalMem_v2"));
    if (start == nullptr || count == nullptr || get == nullptr || name == nullptr || total == nullptr) {
        report.driverError = "the driver library lacks functions of CUDA";
        return;
    }
    int devices = 0;
    const int code = start(0);
    if (code != 0 || count(&devices) != 0) {
        report.driverError = fmt::format("the driver did not start (CUDA error {})", code);
        return;
    }
    for (int ordinal = 0; ordinal < devices; ++ordinal) {
        int device = 0;
        std::array<char, 256> text{};
        std::size_t bytes = 0;
        if (get(&device, ordinal) == 0 && name(text.data(), static_cast<int>(text.size()), device) == 0 &&
            total(&bytes, device) == 0) {
            report.devices.push_back({text.data(), bytes});
        }
    }
}

} // namespace

GpuReport findGpuLibraries() {
    GpuReport report;
    const SearchPath path = searchPath();
    for (const Wanted& wanted : wantedLibraries()) {
        GpuLibrary entry;
        entry.name = wanted.name;
        entry.neededFor = wanted.neededFor;
        entry.install = wanted.install;
        OpenLibrary library;
        entry.found = openFromFolders(library, path.before, wanted, entry) || openBySoname(library, wanted, entry) ||
                      openFromFolders(library, path.after, wanted, entry);
        if (entry.found) {
            entry.error.clear();
            entry.version = wanted.version([&library](const char* name) { return library.symbol(name); });
            if (wanted.name == "libcuda") {
                askForDevices(library, report);
            }
        }
        report.libraries.push_back(std::move(entry));
    }
    return report;
}

} // namespace vitrine::app
