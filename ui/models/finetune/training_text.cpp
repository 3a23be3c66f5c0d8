// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/training_text.h"

#include <QFileInfo>
#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>

#include "base/json_values.h"
#include "engine/quant/conversion_target.h"
#include "engine/quant/format_options.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/workload_table.h"
#include "engine/workload/experiment/workloads.h"
#include "engine/workload/planner/plan_sets.h"
#include "ui/models/common/format.h"
#include "ui/models/session/run_summary.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kSpeedSteps = 50;

QString numberText(double value, int digits) {
    return std::isfinite(value) ? QString::number(value, 'g', digits) : QObject::tr("not a number");
}

QString speedText(double tokensPerSecond) {
    return QObject::tr("%1 tok/s").arg(countText(std::llround(tokensPerSecond)));
}

FlatNode factRow(const QString& name, const QString& value) {
    FlatNode node;
    FlatCell lead(name);
    lead.muted = true;
    node.cells = {lead, FlatCell(value)};
    return node;
}

std::shared_ptr<FlatTree> factTree() {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{QString()}, {QString(), true}};
    return tree;
}

/// "QLoRA, rank 16", "all weights", "all weights, QAT int4".
QString methodText(const engine::Experiment& spec) {
    const std::string method = spec.text("method");
    const QString text = method == "full"
                             ? QObject::tr("all weights")
                             : QObject::tr("%1, rank %2")
                                   .arg(method == "qlora" ? QStringLiteral("QLoRA") : QStringLiteral("LoRA"))
                                   .arg(spec.maybeInteger("rank").value_or(0));
    const QString qat = textOf(spec.text("qat"));
    return qat == QLatin1String("none") ? text : QObject::tr("%1, QAT %2").arg(text, qat);
}

QString trainedPartsText(const engine::Experiment& spec) {
    const QString train = textOf(spec.text("train"));
    return !train.isEmpty() ? train : spec.text("method") == "full" ? QObject::tr("all") : QObject::tr("attention");
}

QString scheduleOf(const engine::Experiment& spec) {
    QStringList words{rateOfLearningText(spec.maybeReal("lr").value_or(0))};
    if (const std::int64_t warmup = spec.maybeInteger("warmup_steps").value_or(0); warmup > 0) {
        words << QObject::tr("warm-up %1 steps").arg(countText(warmup));
    }
    if (const QString schedule = textOf(spec.text("schedule")); schedule != QLatin1String("constant")) {
        words << schedule;
    }
    return words.join(QStringLiteral(", "));
}

} // namespace

bool isTrainingRun(const sessions::RunInfo& run) {
    return run.workload == "finetune";
}

QString longTimeText(double seconds) {
    if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e12) {
        return unknownText();
    }
    if (seconds < 60) {
        return durationText(static_cast<base::TimeNs>(seconds * 1e9));
    }
    struct Unit {
        std::int64_t seconds;
        QString name, part;
        std::int64_t partSeconds;
    };
    const Unit units[] = {{86400, QObject::tr("d"), QObject::tr("h"), 3600},
                          {3600, QObject::tr("h"), QObject::tr("min"), 60},
                          {60, QObject::tr("min"), QObject::tr("s"), 1}};
    for (const Unit& unit : units) {
        const std::int64_t parts = std::llround(seconds / static_cast<double>(unit.partSeconds));
        const std::int64_t perWhole = unit.seconds / unit.partSeconds;
        if (parts >= perWhole) {
            return QStringLiteral("%1 %2 %3 %4")
                .arg(parts / perWhole)
                .arg(unit.name)
                .arg(parts % perWhole)
                .arg(unit.part);
        }
    }
    return unknownText();
}

std::vector<std::pair<QString, QString>> trainingFacts(const sessions::RunInfo& run) {
    const auto spec = engine::Experiment::read(run.specJson);
    if (!spec) {
        return {};
    }
    const RunSummary summary = runSummary(run);
    const auto fileName = [](const std::string& path) { return QFileInfo(textOf(path)).fileName(); };
    std::vector<std::pair<QString, QString>> facts{{QObject::tr("Model"), summary.model}};
    const std::string data = spec->text("data"), tokens = spec->text("tokens_file");
    facts.emplace_back(QObject::tr("Data"), !data.empty()     ? fileName(data)
                                            : !tokens.empty() ? fileName(tokens)
                                                              : QObject::tr("random tokens"));
    if (const auto length = spec->maybeInteger("sequence_length")) {
        facts.emplace_back(QObject::tr("Row"), spec->flag("pack")
                                                   ? QObject::tr("%1 tokens, packed").arg(countText(*length))
                                                   : QObject::tr("%1 tokens").arg(countText(*length)));
    } else if (const auto prompt = spec->maybeInteger("prompt_length")) {
        facts.emplace_back(QObject::tr("Row"), QObject::tr("%1 tokens").arg(countText(*prompt)));
    }
    facts.emplace_back(QObject::tr("Method"),
                       spec->text("method") == "full"
                           ? methodText(*spec)
                           : QObject::tr("%1 on %2").arg(methodText(*spec), trainedPartsText(*spec)));
    facts.emplace_back(QObject::tr("Rate"), scheduleOf(*spec));
    if (const auto batch = spec->maybeInteger("batch")) {
        facts.emplace_back(QObject::tr("Batch"), countText(*batch));
    }
    if (const std::int64_t parts = spec->maybeInteger("accumulate").value_or(1); parts > 1) {
        facts.emplace_back(QObject::tr("Micro-batches"), countText(parts));
    }
    if (const auto seed = spec->maybeInteger("seed")) {
        facts.emplace_back(QObject::tr("Seed"), QString::number(*seed));
    }
    return facts;
}

TrainingTimeText trainingTimeText(const sessions::RunInfo& run, const TrainingRun* training) {
    TrainingTimeText text{QObject::tr("Time"), unknownText(), {}};
    const bool live = run.status == sessions::RunStatus::Running;
    if (training == nullptr || training->empty()) {
        text.how = live ? QObject::tr("The first step has not ended yet.") : QObject::tr("No step was recorded.");
        return text;
    }
    const QString done = longTimeText(training->elapsedSeconds());
    if (!live) {
        text.number = done;
        text.how = training->totalSteps() && *training->totalSteps() > training->lastStep()
                       ? QObject::tr("for %1 of %2 steps")
                             .arg(countText(training->lastStep()), countText(*training->totalSteps()))
                       : QObject::tr("for %1 steps").arg(countText(static_cast<qint64>(training->steps().size())));
        return text;
    }
    text.title = QObject::tr("Time left");
    const auto rest = training->rest();
    if (!rest) {
        text.how = training->totalSteps() && *training->totalSteps() <= training->lastStep()
                       ? QObject::tr("All steps are done; the result is being saved.")
                       : QObject::tr("Known after 20 steps. %1 is done.").arg(done);
        return text;
    }
    text.number = longTimeText(rest->seconds);
    text.how = QObject::tr("%1 steps of %2").arg(countText(rest->steps), longTimeText(rest->stepSeconds));
    if (rest->evaluations > 0) {
        text.how += QObject::tr(", %1 evaluations of %2")
                        .arg(countText(rest->evaluations), longTimeText(rest->evaluationSeconds));
    }
    if (rest->answerSets > 0) {
        text.how +=
            QObject::tr(", %1 answer sets of %2").arg(countText(rest->answerSets), longTimeText(rest->answerSeconds));
    }
    text.how += QObject::tr(". %1 are done.").arg(done);
    return text;
}

FlatTreePtr trainingTimeTable(const TrainingRun& training) {
    auto tree = factTree();
    if (training.empty()) {
        return tree;
    }
    const std::size_t count = std::min(training.steps().size(), kSpeedSteps);
    double seconds = 0, tokens = 0;
    for (std::size_t i = training.steps().size() - count; i < training.steps().size(); ++i) {
        seconds += static_cast<double>(training.steps()[i].end - training.steps()[i].begin) / 1e9;
        tokens += static_cast<double>(training.steps()[i].tokens);
    }
    tree->nodes.push_back(factRow(QObject::tr("Elapsed"), longTimeText(training.elapsedSeconds())));
    tree->nodes.push_back(factRow(QObject::tr("Speed, last %1 steps").arg(count),
                                  seconds > 0 ? speedText(tokens / seconds) : unknownText()));
    tree->nodes.push_back(factRow(QObject::tr("Tokens"), countText(training.tokens())));
    return tree;
}

FlatTreePtr trainedTable(const sessions::RunInfo& run, const TrainingRun* training) {
    auto tree = factTree();
    const auto spec = engine::Experiment::read(run.specJson);
    if (!spec) {
        return tree;
    }
    tree->nodes.push_back(factRow(QObject::tr("Method"), methodText(*spec)));
    tree->nodes.push_back(factRow(QObject::tr("Trained"), trainedPartsText(*spec)));
    if (training != nullptr && training->trainedParameters()) {
        const auto trained = static_cast<qint64>(*training->trainedParameters());
        QString text = countText(trained);
        if (training->modelParameters() && *training->modelParameters() > 0) {
            const double share = static_cast<double>(trained) / static_cast<double>(*training->modelParameters());
            text += QObject::tr(" (%1)").arg(shareText(share));
        }
        tree->nodes.push_back(factRow(QObject::tr("Parameters"), text));
    }
    tree->nodes.push_back(factRow(QObject::tr("Learning rate"), scheduleOf(*spec)));
    tree->nodes.push_back(factRow(QObject::tr("Optimizer"), spec->text("optimizer") == "adamw8bit"
                                                                ? QObject::tr("AdamW, 8-bit moments")
                                                                : QObject::tr("AdamW")));
    const QString checkpoint = textOf(spec->text("checkpoint"));
    tree->nodes.push_back(factRow(QObject::tr("Kept for backward"),
                                  checkpoint == QLatin1String("none")      ? QObject::tr("all activations")
                                  : checkpoint == QLatin1String("offload") ? QObject::tr("layer inputs, in host memory")
                                                                           : QObject::tr("layer inputs")));
    return tree;
}

QString checkpointRuleText(const sessions::RunInfo& run) {
    const auto spec = engine::Experiment::read(run.specJson);
    const std::int64_t every = spec && isTrainingRun(run) ? spec->maybeInteger("save_every").value_or(0) : 0;
    if (every == 0) {
        return {};
    }
    const std::int64_t keep = spec->maybeInteger("keep_checkpoints").value_or(0);
    const QString rule = every == 1 ? QObject::tr("every step") : QObject::tr("every %1 steps").arg(countText(every));
    return keep > 0 ? QObject::tr("%1, the last %2 are kept").arg(rule, countText(keep)) : rule;
}

FlatTreePtr checkpointTable(const TrainingRun& training, std::size_t most) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {
        {QObject::tr("Step")}, {QObject::tr("Evaluation loss"), true}, {QObject::tr("Kept because"), true}};
    for (auto checkpoint = training.checkpoints().rbegin(); checkpoint != training.checkpoints().rend(); ++checkpoint) {
        if (!checkpoint->kept || (tree->nodes.size() >= most && !checkpoint->best)) {
            continue;
        }
        QStringList why;
        if (checkpoint->best) {
            why << QObject::tr("best");
        }
        why << (checkpoint->newest               ? QObject::tr("newest")
                : training.keptCheckpoints() > 0 ? QObject::tr("last %1").arg(countText(training.keptCheckpoints()))
                                                 : QObject::tr("saved"));
        FlatNode& node = tree->nodes.emplace_back();
        node.key = static_cast<quint64>(checkpoint->step);
        node.cells = {FlatCell(countText(checkpoint->step), static_cast<qlonglong>(checkpoint->step)),
                      FlatCell(checkpoint->evalLoss ? lossText(*checkpoint->evalLoss) : unknownText()),
                      FlatCell(why.join(QStringLiteral(", ")))};
    }
    return tree;
}

FlatTreePtr trainingStepTable(const TrainingRun& training, std::size_t most) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{QObject::tr("Step"), true},          {QObject::tr("Loss"), true},
                     {QObject::tr("Smoothed"), true},      {QObject::tr("Learning rate"), true},
                     {QObject::tr("Gradient norm"), true}, {QObject::tr("Tokens/s"), true},
                     {QObject::tr("Step time"), true}};
    if (!training.codesChanged().empty()) {
        tree->columns.push_back({QObject::tr("Codes changed"), true});
    }
    const std::size_t all = training.steps().size(), rows = std::min(all, most);
    for (std::size_t row = 1; row <= rows; ++row) {
        const std::size_t i = row * all / rows - 1;
        const base::TrainingStepEvent& step = training.steps()[i];
        const auto real = [](const QString& text, double value) {
            return FlatCell(text, value, QString::number(value, 'g', 9));
        };
        FlatNode& node = tree->nodes.emplace_back();
        node.key = static_cast<quint64>(step.step);
        node.cells = {FlatCell(countText(step.step), static_cast<qlonglong>(step.step)),
                      real(lossText(step.loss), step.loss),
                      real(lossText(training.smoothed().value(i)), training.smoothed().value(i)),
                      real(rateOfLearningText(step.learningRate), step.learningRate),
                      real(numberText(step.gradientNorm, 3), step.gradientNorm),
                      real(countText(std::llround(training.speed().value(i))), training.speed().value(i)),
                      FlatCell(durationText(step.end - step.begin), static_cast<qlonglong>(step.end - step.begin))};
        if (!training.codesChanged().empty()) {
            const std::optional<double> codes = training.codesChanged(i);
            node.cells.push_back(codes ? real(codesText(*codes), *codes) : FlatCell(unknownText()));
        }
    }
    return tree;
}

QString trainingStepText(const TrainingRun& training, std::size_t index) {
    const base::TrainingStepEvent& step = training.steps()[index];
    const QString text = QObject::tr("Step %1: loss %2, smoothed %3, rate %4, norm %5, %6")
                             .arg(countText(step.step), lossText(step.loss), lossText(training.smoothed().value(index)),
                                  rateOfLearningText(step.learningRate), numberText(step.gradientNorm, 3),
                                  speedText(training.speed().value(index)));
    const std::optional<double> codes = training.codesChanged(index);
    return codes ? QObject::tr("%1, %2 of codes changed").arg(text, codesText(*codes)) : text;
}

QString lossText(double value) {
    return std::isfinite(value) ? QString::number(value, 'f', std::abs(value) < 1000 ? 3 : 0)
                                : QObject::tr("not a number");
}

QString rateOfLearningText(double value) {
    QString text = numberText(value, 3);
    text.replace(QLatin1String("e-0"), QLatin1String("e-"));
    return text.replace(QLatin1String("e-"), QStringLiteral("e\u2212"));
}

QString codesText(double share) {
    constexpr double kOneDecimal = 0.01; // from which on one is enough
    return share > 0 && share < kOneDecimal ? rateOfLearningText(share * 100) + QStringLiteral("\u00A0%")
                                            : shareText(share);
}

QString scheduleText(const sessions::RunInfo& run) {
    const auto spec = engine::Experiment::read(run.specJson);
    return spec ? scheduleOf(*spec) : QString();
}

std::optional<std::string> experimentFrom(const sessions::RunInfo& run, std::int64_t step, bool branch) {
    auto spec = engine::Experiment::read(run.specJson);
    if (!spec || spec->text("output").empty()) {
        return std::nullopt;
    }
    const std::string output = spec->text("output"), number = std::to_string(step);
    spec->set("resume", output + "/checkpoint-" + number);
    if (branch) {
        spec->set("output", output + "-from-" + number);
    }
    return spec->jsonText();
}

std::optional<std::string> experimentTrying(const sessions::RunInfo& run) {
    const auto spec = engine::Experiment::read(run.specJson);
    if (!spec || run.status != sessions::RunStatus::Done || spec->isPlan() ||
        spec->workload().name != engine::kFinetuneWorkload.name || spec->text("output").empty() ||
        spec->text("method") == "full") {
        return std::nullopt;
    }
    engine::Experiment answer = spec->as(engine::kGenerateWorkload);
    for (const char* const ofTraining : {"batch", "output", "tokens_file", "prompt_length"}) {
        if (engine::takesOption(answer, ofTraining)) {
            answer.unset(ofTraining);
        }
    }
    answer.set("adapter", spec->text("output"));
    return answer.jsonText();
}

std::string formatTrainedFor(const sessions::RunInfo& run) {
    const auto spec = engine::Experiment::read(run.specJson);
    if (!spec || run.status != sessions::RunStatus::Done || spec->isPlan() ||
        spec->workload().name != engine::kFinetuneWorkload.name || spec->text("qat") == "none") {
        return {};
    }
    std::string format = spec->text("qat");
    auto group = spec->maybeInteger("group_size");
    if (!engine::hasGroups(format)) {
        return group ? format + ':' + std::to_string(*group) : format;
    }
    format += ':' + std::to_string(group.value_or(engine::kQatInt4Group));
    // The usual rule of the lab is another one, and needs no name there.
    const std::string rule = spec->has("int4_rule") ? spec->text("int4_rule") : std::string(engine::kQatInt4Rule);
    return engine::kInt4Rules.starts_with(rule) ? format : format + ':' + rule;
}

namespace {

/// Where the run left a whole model; empty where it left none.
std::string modelFolderOf(const engine::Experiment& spec) {
    std::string output = spec.text("output");
    if (output.empty() || spec.text("method") == "full") {
        return output;
    }
    return spec.text("merge") == "none" ? std::string() : output + "/merged";
}

} // namespace

std::optional<std::string> experimentComparing(const sessions::RunInfo& run) {
    const auto spec = engine::Experiment::read(run.specJson);
    const std::string format = formatTrainedFor(run);
    if (format.empty() || modelFolderOf(*spec).empty()) {
        return std::nullopt;
    }
    engine::Experiment lab = spec->as(engine::kPrecisionWorkload);
    for (const char* const ofTraining : {"batch", "output"}) {
        if (engine::takesOption(lab, ofTraining)) {
            lab.unset(ofTraining);
        }
    }
    lab.set("model", modelFolderOf(*spec));
    lab.set("formats", "bf16," + format);
    return lab.jsonText();
}

} // namespace vitrine::ui
