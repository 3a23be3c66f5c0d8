// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/rewards/group_memory.h"

#include <array>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <string>
#include <unistd.h>

#include "base/descriptor.h"

namespace vitrine::engine {

namespace {

// Places behind the program's name: state, parent, group, ...
constexpr int kGroupPlace = 2;
constexpr int kPagesPlace = 21;

struct CloseFolder {
    void operator()(DIR* folder) const { ::closedir(folder); }
};

template <class Number> bool readNumber(std::string_view word, Number& number) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && end == word.data() + word.size();
}

} // namespace

std::optional<ProcessMemory> readProcessStat(std::string_view text) {
    const std::size_t name = text.rfind(") ");
    if (name == std::string_view::npos) {
        return std::nullopt;
    }
    text.remove_prefix(name + 2);
    ProcessMemory memory;
    for (int place = 0; place <= kPagesPlace; ++place) {
        const std::size_t end = text.find_first_of(" \n");
        const std::string_view word = text.substr(0, end);
        if ((place == kGroupPlace && !readNumber(word, memory.group)) ||
            (place == kPagesPlace && !readNumber(word, memory.pages))) {
            return std::nullopt;
        }
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return memory;
}

std::map<pid_t, std::uint64_t> residentByGroup() {
    std::map<pid_t, std::uint64_t> bytes;
    const std::unique_ptr<DIR, CloseFolder> folder(::opendir("/proc"));
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    while (const dirent* entry = folder == nullptr ? nullptr : ::readdir(folder.get())) {
        pid_t process = 0;
        if (!readNumber(std::string_view(entry->d_name), process)) {
            continue;
        }
        const std::string path = "/proc/" + std::string(entry->d_name) + "/stat";
        const base::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        std::array<char, 1024> text{}; // all of it: a name has 16 bytes at most, and there are some fifty numbers
        const ssize_t size = file.isOpen() ? ::read(file.get(), text.data(), text.size()) : -1;
        if (size <= 0) {
            continue;
        }
        if (const auto memory = readProcessStat({text.data(), static_cast<std::size_t>(size)})) {
            bytes[memory->group] += memory->pages * page;
        }
    }
    return bytes;
}

} // namespace vitrine::engine
