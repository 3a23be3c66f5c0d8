// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Folders and packs for tests of the JIT.

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "base/sha256.h"

namespace vitrine::kernels {

/// A folder of the test, removed with it.
class TestFolder {
public:
    TestFolder() {
        static int made = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("vitrine-jit-" + std::to_string(::getpid()) + "-" + std::to_string(made++));
        std::filesystem::create_directories(path_);
    }
    ~TestFolder() {
        std::error_code error;
        std::filesystem::remove_all(path_, error);
    }
    TestFolder(const TestFolder&) = delete; // owns the folder
    TestFolder& operator=(const TestFolder&) = delete;

    std::string path() const { return path_.string(); }
    void write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories((path_ / name).parent_path());
        std::ofstream(path_ / name, std::ios::binary) << text;
    }

private:
    std::filesystem::path path_;
};

inline const char* const kDoubleSource = R"(
struct DoubleParams { const float* x; float* out; int n; };
extern "C" __global__ void twice(const __grid_constant__ DoubleParams p) {
    const int i = blockIdx.x * VT_THREADS + threadIdx.x;
    if (i < p.n) {
        p.out[i] = p.x[i] * VT_FACTOR;
    }
}
)";

/// A variant of the family "double" as JSON; `more` holds further fields, each followed by a comma.
inline std::string doubleVariant(const std::string& name, const std::string& more, const std::string& source) {
    return R"({"name": ")" + name + R"(", "family": "double", "abi": 1, "archs": ["sm_80", "sm_90a"], )" + more +
           R"json("specialize": ["factor"], "defines": {"VT_THREADS": "128"},
              "files": [{"path": "double.cuh", "kind": "cuda", "sha256": ")json" +
           base::sha256Hex(source) + R"json("}],
              "launches": [{"entry": "twice", "grid": ["ceil_div(n, 128)"], "block": [128], "shared": "n > 1000 ? 64 : 0"}]
})json";
}

inline std::string manifestOf(const std::string& name, const std::string& variants) {
    return R"({"vitrine_kernel_pack": 1, "name": ")" + name + R"(", "variants": [)" + variants + "]}";
}

} // namespace vitrine::kernels
