// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the tests of quantization-aware training share.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "engine/workload/common/workload.h"
#include "engine/workload/experiment/experiment.h"
#include "tests/engine/checkpoint/checkpoint_test_files.h"

namespace vitrine::engine::test {

class QuantizationAware : public testing::Test {
protected:
    static nlohmann::json experimentOf(const std::string& model,
                                       const nlohmann::json& more = nlohmann::json::object()) {
        nlohmann::json experiment = {{"vitrine", 1},
                                     {"workload", "finetune"},
                                     {"backend", "cpu"},
                                     {"model", fixture(model)},
                                     {"tokens_file", fixture("qat-" + model + "/batch.safetensors")},
                                     {"method", "full"},
                                     {"qat", "int4"},
                                     {"lr", 0.001},
                                     {"weight_decay", 0},
                                     {"steps", 6},
                                     {"dtype", "float32"}};
        experiment.update(more);
        return experiment;
    }
    static nlohmann::json run(const nlohmann::json& experiment) {
        return runExperiment(Experiment::parse(experiment, "experiment"), {}, {});
    }
    static void expectRefused(const nlohmann::json& experiment, const std::string& part) {
        try {
            run(experiment);
            ADD_FAILURE() << "accepted, but expected: " << part;
        } catch (const base::Error& error) {
            EXPECT_THAT(error.message(), testing::HasSubstr(part));
        }
    }
    std::string at(const std::string& name) const { return folder_.path() + "/" + name; }

private:
    TempFolder folder_;
};

} // namespace vitrine::engine::test
