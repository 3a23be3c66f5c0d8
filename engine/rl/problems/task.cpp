// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/task.h"

#include <algorithm>
#include <array>

#include "base/philox.h"
#include "engine/rl/problems/task_list.h"

namespace vitrine::engine {

std::int64_t ProblemDraws::between(std::int64_t least, std::int64_t most) {
    const std::uint64_t span = static_cast<std::uint64_t>(most) - static_cast<std::uint64_t>(least);
    const base::PhiloxKey key = base::philoxKey(seed_, stream_);
    // Numbers of the last, incomplete repetition of the span are drawn again: they would prefer its beginning.
    const std::uint64_t choices = span + 1; // 0: all numbers of 64 bits
    const std::uint64_t surplus = choices == 0 ? 0 : (0 - choices) % choices;
    for (;;) {
        const auto bits = base::philox4x32(key, number_, next_++);
        const std::uint64_t wide = (std::uint64_t{bits[0]} << 32) | bits[1];
        if (wide >= surplus) {
            const std::uint64_t offset = choices == 0 ? wide : wide % choices;
            return static_cast<std::int64_t>(static_cast<std::uint64_t>(least) + offset);
        }
    }
}

std::span<const Task> tasks() {
    static const std::array<Task, 5> kTasks = {sumsTask(), sortingTask(), bracketsTask(), lettersTask(), formatTask()};
    return kTasks;
}

const Task* findTask(std::string_view name) {
    const auto found = std::ranges::find(tasks(), name, &Task::name);
    return found == tasks().end() ? nullptr : &*found;
}

} // namespace vitrine::engine
