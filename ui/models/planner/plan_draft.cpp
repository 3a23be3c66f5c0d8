// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/planner/plan_draft.h"

#include <QObject>
#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <variant>

#include "base/error.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/option_table.h"
#include "engine/workload/experiment/workload_table.h"
#include "kernels/core/device_traits.h"
#include "ui/models/common/format.h"
#include "ui/models/run/experiment_form.h"

namespace vitrine::ui {

namespace {

constexpr const char* kFirstWorkload = "finetune";
constexpr const char* kFirstDevice = "h100-80gb";
constexpr std::int64_t kUsualContext = 8192, kUsualPrompt = 512; ///< of rows, and of problems that are asked

bool plansOverContext(const engine::Workload& workload) {
    const auto takes = [&](std::string_view key) {
        const engine::OptionSpec* option = engine::findOption(key);
        return option != nullptr && engine::optionApplies(*option, workload.name, true);
    };
    return workload.plan != nullptr && (takes("prompt_length") || takes("prompt_tokens")) &&
           (takes("tiled_mlp") || takes("kv_dtype"));
}

engine::Experiment emptyExperiment(const std::string& workload) {
    return *engine::Experiment::read(R"({"vitrine": 1, "workload": ")" + workload + R"("})");
}

} // namespace

std::vector<PlanDevice> planDevices() {
    std::vector<PlanDevice> out;
    for (const std::string& id : kernels::deviceProfileNames()) {
        out.push_back({textOf(id), textOf(kernels::loadDeviceProfile(id).name)});
    }
    out.push_back({QStringLiteral("cpu"), QObject::tr("this processor")});
    return out;
}

QString deviceNamed(const QString& name) {
    return textOf(kernels::profileOfDevice(name.toStdString()));
}

PlanDraft::PlanDraft() : experiment_(emptyExperiment(kFirstWorkload)), device_(QString::fromLatin1(kFirstDevice)) {}

std::optional<PlanDraft> PlanDraft::of(const std::string& experimentJson) {
    std::optional<engine::Experiment> experiment = engine::Experiment::read(experimentJson);
    if (!experiment || !plansOverContext(experiment->workload()) || experiment->has("rollouts")) {
        return std::nullopt; // answers that are given have lengths of their own
    }
    PlanDraft out;
    out.experiment_ = *std::move(experiment);
    out.context_ = engine::contextOf(out.experiment_).value_or(out.asks() ? kUsualPrompt : kUsualContext);
    if (const QString profile = textOf(out.experiment_.text("device_profile")); !profile.isEmpty()) {
        out.device_ = profile;
    } else if (out.experiment_.text("backend") == "cpu") {
        out.device_ = QStringLiteral("cpu");
    }
    return out;
}

std::vector<std::pair<QString, QString>> PlanDraft::workloads() {
    std::vector<std::pair<QString, QString>> out;
    for (const engine::Workload* workload : engine::workloadTable()) {
        if (plansOverContext(*workload)) {
            out.emplace_back(textOf(workload->name), QObject::tr(std::string(workload->title).c_str()));
        }
    }
    return out;
}

QString PlanDraft::workload() const {
    return textOf(experiment_.workload().name);
}

void PlanDraft::setWorkload(const QString& name) {
    if (const engine::Workload* workload = engine::findWorkload(name.toStdString())) {
        experiment_ = experiment_.as(*workload);
        const bool asked = asks();
        experiment_ = *engine::Experiment::read(experiment_.jsonText()); // with the defaults of the workload
        if (asks() != asked) {
            context_ = asks() ? kUsualPrompt : kUsualContext;
        }
    }
}

bool PlanDraft::asks() const {
    return engine::takesOption(experiment_, "samples");
}

QString PlanDraft::model() const {
    return textOf(experiment_.text("model"));
}

void PlanDraft::setModel(const QString& model) {
    experiment_.set("model", model.toStdString());
}

void PlanDraft::setContext(std::int64_t tokens) {
    context_ = std::max<std::int64_t>(tokens, 2);
}

std::vector<PlanNumber> PlanDraft::numbers() const {
    struct Row {
        const char* key;
        QString label;
        std::int64_t otherwise, high;
    };
    const Row asked[] = {{"prompts", QObject::tr("Prompts"), 16, 256},
                         {"samples", QObject::tr("Samples"), 8, 64},
                         {"max_new_tokens", QObject::tr("New tokens"), 128, 8192},
                         {"rank", QObject::tr("Rank"), 16, 128}};
    const Row usual[] = {{"batch", QObject::tr("Batch, rows"), 1, 64},
                         {"rank", QObject::tr("Rank"), 16, 128},
                         {"prefill_chunk", QObject::tr("Prefill step"), 8192, 16384},
                         {"slots", QObject::tr("Slots"), 16, 256},
                         {"token_budget", QObject::tr("Step tokens"), 8192, 16384},
                         {"max_new_tokens", QObject::tr("New tokens"), 128, 8192}};
    const std::span<const Row> rows = asks() ? std::span<const Row>(asked) : usual;
    const std::size_t most = asks() ? std::size(asked) : 3;
    std::vector<PlanNumber> out;
    for (const Row& row : rows) {
        const bool rankless = std::string_view(row.key) == "rank" && experiment_.text("method") == "full";
        if (engine::takesOption(experiment_, row.key) && !rankless && out.size() < most) {
            const std::int64_t set = experiment_.maybeInteger(row.key).value_or(0);
            const std::int64_t value = set > 0 ? set : row.otherwise;
            const std::int64_t least = std::string_view(row.key) == "samples" ? 2 : 1; // answers are compared
            out.push_back({row.key, row.label, value, least, std::max(row.high, value)});
        }
    }
    return out;
}

void PlanDraft::setNumber(const std::string& key, std::int64_t value) {
    experiment_.set(key, std::max<std::int64_t>(value, 1));
}

std::vector<PlanChoice> PlanDraft::choices() const {
    std::vector<PlanChoice> out;
    for (const std::string_view key : engine::planChoices(experiment_)) {
        const QString name = textOf(key);
        out.push_back({std::string(key), ExperimentForm::label(name), textOf(engine::findOption(key)->help),
                       textOf(experiment_.text(key)), ExperimentForm::choices(name)});
    }
    return out;
}

void PlanDraft::setChoice(const std::string& key, const QString& value) {
    if (value.isEmpty()) {
        experiment_.unset(key);
    } else {
        experiment_.set(key, value.toStdString());
    }
}

void PlanDraft::edit(const std::vector<engine::OptionEdit>& edits) {
    for (const engine::OptionEdit& edit : edits) {
        if (edit.key == "device_profile") {
            device_ = textOf(std::get<std::string>(edit.value));
        } else if (edit.key == "prompt_length" || edit.key == "prompt_tokens") { // both say the context
            const engine::Experiment changed = engine::edited(experiment_, {edit});
            context_ = textOf(changed.valueText(edit.key)).toLongLong();
        } else {
            experiment_.set(edit.key, edit.value);
        }
    }
}

engine::Experiment PlanDraft::toPlan() const {
    engine::Experiment out = experiment_;
    for (const std::string_view key : engine::inputOptions()) {
        if (engine::takesOption(out, key)) {
            out.unset(key);
        }
    }
    if (engine::takesOption(out, "device_profile")) {
        out.unset("device_profile");
    }
    out = engine::withContext(out, context_);
    const bool cpu = device_ == QLatin1String("cpu");
    out.set("backend", std::string(cpu ? "cpu" : "meta"));
    if (!cpu) {
        out.set("device_profile", device_.toStdString());
    }
    return out;
}

engine::Experiment PlanDraft::toRun() const {
    engine::Experiment out = experiment_;
    for (const char* key : {"device_profile", "max_context", "max_batch", "techniques", "plan"}) {
        if (engine::takesOption(out, key)) {
            out.unset(key);
        }
    }
    if (out.text("backend") == "meta") {
        out.unset("backend");
    }
    if (engine::takesOption(out, "sequence_length") && (out.has("data") || out.has("tokens_file"))) {
        out.set("sequence_length", context_);
    } else if (std::ranges::none_of(std::to_array({"prompt", "chat", "tokens", "trace", "task", "data"}),
                                    [&](const char* key) { return out.has(key); })) {
        out = engine::withContext(out, context_);
    }
    return out;
}

QString PlanDraft::commandLine() const {
    ExperimentForm form;
    engine::Experiment plan = toPlan();
    try {
        plan = plan.asPlan();
    } catch (const base::BadInput&) {
        return {};
    }
    return form.load(textOf(plan.jsonText())).isEmpty() ? form.commandLine() : QString();
}

} // namespace vitrine::ui
