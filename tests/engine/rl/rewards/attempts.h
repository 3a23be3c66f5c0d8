// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/rl/rewards/rewarder.h"
#include "tests/base/eventually.h"

namespace vitrine::test {

inline engine::Attempt attempt(std::int64_t id, std::string answer = "x") {
    auto problem = std::make_shared<engine::Problem>();
    problem->name = "sums 1";
    problem->text = "1+1=";
    problem->facts = std::make_shared<const nlohmann::json>(nlohmann::json{{"solution", 2}});
    engine::Attempt made;
    made.id = id;
    made.problem = std::move(problem);
    made.answer = std::move(answer);
    return made;
}

/// Takes until nothing waits any more, or a minute of looking has passed. By id.
inline std::map<std::int64_t, engine::Judgement> takeAll(engine::Rewarder& rewarder) {
    std::map<std::int64_t, engine::Judgement> all;
    eventually([&] {
        for (engine::Judgement& judgement : rewarder.take(true)) {
            const std::int64_t id = judgement.id;
            all.emplace(id, std::move(judgement));
        }
        return rewarder.waiting() == 0;
    });
    return all;
}

} // namespace vitrine::test
