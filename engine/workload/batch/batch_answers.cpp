// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/batch/batch_answers.h"

#include <nlohmann/json.hpp>

#include "engine/checkpoint/atomic_file.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

Json answerJson(const TraceRow& row, const BatchResult& result, bool hasText) {
    Json out = {{"id", row.idJson()}, {"ids", result.result.ids}};
    if (!result.refusal.empty()) {
        out["refused"] = result.refusal;
        return out;
    }
    out["finish_reason"] = finishReasonName(result.result.finish);
    const auto final = result.result.channels.find("final");
    if (hasText && final != result.result.channels.end()) {
        out["text"] = final->second;
    }
    return out;
}

} // namespace

void writeAnswers(const std::string& path, const BatchEngine& engine, const std::vector<TraceRow>& rows, bool hasText) {
    if (path.empty()) {
        return;
    }
    const auto known = static_cast<std::size_t>(engine.scheduler().requests());
    std::string text;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Json row = i < known ? answerJson(rows[i], engine.result(static_cast<std::int32_t>(i)), hasText)
                                   : answerJson(rows[i], {}, false);
        text += row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }
    writeTextFile(path, text);
}

} // namespace vitrine::engine
