// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/shared_library.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <vector>

namespace vitrine::base {

namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
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

std::vector<fs::path> foldersBeforeTheSystem() {
    std::vector<fs::path> folders;
    if (const std::string home = environment("VITRINE_CUDA_HOME"); !home.empty()) {
        folders.emplace_back(home);
        addToolkit(folders, home);
    }
    std::error_code error;
    if (const fs::path program = fs::read_symlink("/proc/self/exe", error); !error) {
        folders.push_back(program.parent_path());
        folders.push_back(program.parent_path().parent_path() / "lib");
    }
    if (const std::string home = environment("CUDA_HOME"); !home.empty()) {
        addToolkit(folders, home);
    }
    addToolkit(folders, "/usr/local/cuda");
    addToolkit(folders, "/opt/cuda");
    return folders;
}

} // namespace

bool SharedLibrary::open(const std::string& file) {
    handle_ = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle_ == nullptr) {
        const char* reason = ::dlerror();
        error_ = reason == nullptr ? file : reason;
        return false;
    }
    path_ = file;
    error_.clear();
    return true;
}

void* SharedLibrary::symbol(const char* name) const {
    return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

SharedLibrary SharedLibrary::find(std::span<const std::string> sonames) {
    SharedLibrary library;
    const auto inFolders = [&](const std::vector<fs::path>& folders) {
        for (const fs::path& folder : folders) {
            for (const std::string& soname : sonames) {
                std::error_code error;
                const fs::path file = folder / soname;
                if (fs::exists(file, error) && library.open(file.string())) {
                    return true;
                }
            }
        }
        return false;
    };
    if (inFolders(foldersBeforeTheSystem())) {
        return library;
    }
    const std::string fileError = library.error_;
    for (const std::string& soname : sonames) {
        if (library.open(soname)) {
            return library;
        }
    }
    // The reason why an existing file did not open says more than "No such file" for the bare name.
    library.error_ = fileError;
    inFolders(pipFolders());
    return library;
}

} // namespace vitrine::base
