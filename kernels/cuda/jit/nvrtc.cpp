// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/nvrtc.h"

#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <nvrtc.h>

#include "base/shared_library.h"

namespace vitrine::kernels {

namespace {

#define VITRINE_NVRTC_FUNCTIONS(F)                                                                                     \
    F(nvrtcVersion)                                                                                                    \
    F(nvrtcGetErrorString)                                                                                             \
    F(nvrtcCreateProgram)                                                                                              \
    F(nvrtcDestroyProgram)                                                                                             \
    F(nvrtcCompileProgram)                                                                                             \
    F(nvrtcGetProgramLogSize)                                                                                          \
    F(nvrtcGetProgramLog)                                                                                              \
    F(nvrtcGetCUBINSize)                                                                                               \
    F(nvrtcGetCUBIN)

struct NvrtcFunctions {
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define VITRINE_MEMBER(name) decltype(&::name) name = nullptr;
    VITRINE_NVRTC_FUNCTIONS(VITRINE_MEMBER)
#undef VITRINE_MEMBER
};

struct LoadedNvrtc {
    NvrtcFunctions functions;
    std::string version, path, missing;
};

LoadedNvrtc loadNvrtc() {
    LoadedNvrtc out;
    const std::vector<std::string> names{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    const base::SharedLibrary library = base::SharedLibrary::find(names);
    if (!library.isOpen()) {
        out.missing = "NVRTC was not found; install the CUDA toolkit, or: pip install nvidia-cuda-nvrtc" +
                      (library.error().empty() ? "" : " (" + library.error() + ")");
        return out;
    }
    out.path = library.path();
#define VITRINE_LOAD(name)                                                                                             \
    out.functions.name = reinterpret_cast<decltype(&::name)>(library.symbol(#name));                                   \
    if (out.functions.name == nullptr) {                                                                               \
        out.missing = fmt::format("{}: lacks {}; install a CUDA toolkit of version 12 or later", out.path, #name);     \
        return out;                                                                                                    \
    }
    VITRINE_NVRTC_FUNCTIONS(VITRINE_LOAD)
#undef VITRINE_LOAD
    int major = 0;
    int minor = 0;
    if (out.functions.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS || major < 12) {
        out.missing =
            fmt::format("{}: is version {}.{}; install a CUDA toolkit of version 12 or later", out.path, major, minor);
        return out;
    }
    out.version = fmt::format("{}.{}", major, minor);
    return out;
}

const LoadedNvrtc& loadedNvrtc() {
    static const LoadedNvrtc kLoaded = loadNvrtc();
    return kLoaded;
}

/// Destroys the program however the compilation ends.
class NvrtcProgram {
public:
    NvrtcProgram(const NvrtcFunctions& functions, const CompileJob& request) : functions_(functions) {
        std::vector<const char*> texts;
        std::vector<const char*> names;
        for (const auto& [name, text] : request.headers) {
            names.push_back(name.c_str());
            texts.push_back(text.c_str());
        }
        check(functions_.nvrtcCreateProgram(&program_, request.source.c_str(), request.name.c_str(),
                                            static_cast<int>(names.size()), texts.data(), names.data()));
    }
    ~NvrtcProgram() { functions_.nvrtcDestroyProgram(&program_); }
    NvrtcProgram(const NvrtcProgram&) = delete; // one owner destroys
    NvrtcProgram& operator=(const NvrtcProgram&) = delete;

    bool compile(const std::vector<std::string>& options) {
        std::vector<const char*> pointers;
        for (const std::string& option : options) {
            pointers.push_back(option.c_str());
        }
        code_ = functions_.nvrtcCompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
        return code_ == NVRTC_SUCCESS;
    }
    std::string error() const { return functions_.nvrtcGetErrorString(code_); }
    std::string log() const {
        std::size_t size = 0;
        check(functions_.nvrtcGetProgramLogSize(program_, &size));
        std::string text(size, '\0');
        check(functions_.nvrtcGetProgramLog(program_, text.data()));
        while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) {
            text.pop_back();
        }
        return text;
    }
    std::vector<std::uint8_t> cubin() const {
        std::size_t size = 0;
        check(functions_.nvrtcGetCUBINSize(program_, &size));
        std::vector<std::uint8_t> image(size);
        check(functions_.nvrtcGetCUBIN(program_, reinterpret_cast<char*>(image.data())));
        return image;
    }

private:
    void check(nvrtcResult code) const {
        if (code != NVRTC_SUCCESS) {
            throw base::Internal(fmt::format("NVRTC: {}", functions_.nvrtcGetErrorString(code)));
        }
    }

    const NvrtcFunctions& functions_;
    nvrtcProgram program_ = nullptr;
    nvrtcResult code_ = NVRTC_SUCCESS;
};

/// The first line that names an error, else the first line.
std::string firstError(const std::string& log, const std::string& fallback) {
    std::size_t begin = log.find("error");
    if (begin == std::string::npos) {
        return log.empty() ? fallback : log.substr(0, log.find('\n'));
    }
    begin = log.rfind('\n', begin);
    begin = begin == std::string::npos ? 0 : begin + 1;
    return log.substr(begin, log.find('\n', begin) - begin);
}

} // namespace

const Nvrtc* Nvrtc::find() {
    static const Nvrtc* const kCompiler = [] {
        const LoadedNvrtc& library = loadedNvrtc();
        Nvrtc* compiler = nullptr;
        if (library.missing.empty()) {
            static Nvrtc instance;
            instance.version_ = library.version;
            instance.path_ = library.path;
            compiler = &instance;
        }
        return compiler;
    }();
    return kCompiler;
}

const std::string& Nvrtc::whyMissing() {
    return loadedNvrtc().missing;
}

CompiledKernel Nvrtc::compile(const CompileJob& request) const {
    const auto begin = std::chrono::steady_clock::now();
    // -modify-stack-limit=false: other threads run meanwhile, and the limit is the process's.
    std::vector<std::string> options{"--gpu-architecture=" + request.arch, "-std=c++20", "--ptxas-options=-v",
                                     "-modify-stack-limit=false", "-no-source-include"};
    if (std::atoi(version_.c_str()) >= 13) {
        // What its own cache knows comes without a log: no registers, no warnings. Ours keeps both.
        options.emplace_back("--no-cache");
    }
    options.insert(options.end(), request.options.begin(), request.options.end());
    NvrtcProgram program(loadedNvrtc().functions, request);
    const bool done = program.compile(options);
    const std::string log = program.log();
    if (!done) {
        throw KernelCompileError(request.errorKind,
                                 fmt::format("{}: does not compile for {}: {}", request.name, request.arch,
                                             firstError(log, program.error())),
                                 log);
    }
    CompiledKernel out;
    out.image = program.cubin();
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    readCompileLog(log, out);
    return out;
}

} // namespace vitrine::kernels
