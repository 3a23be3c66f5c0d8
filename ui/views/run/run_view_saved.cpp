// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The saved run that is chosen: its texts with every token's facts, its numbers, its settings in the form.
#include <QHBoxLayout>
#include <QPushButton>
#include <algorithm>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/batching/batch_runs.h"
#include "ui/models/common/format.h"
#include "ui/models/common/json_rows.h"
#include "ui/models/rl/rl_run.h"
#include "ui/models/run/rl_result.h"
#include "ui/models/run/run_result.h"
#include "ui/models/session/run_filter.h"
#include "ui/models/session/run_summary.h"
#include "ui/models/session/saved_tokens.h"
#include "ui/views/run/run_view.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/option_form.h"
#include "ui/widgets/plots/token_text.h"

namespace vitrine::ui {

namespace {

constexpr std::size_t kSummaryRows = 40;

} // namespace

QWidget* RunView::buildRlBar(QWidget* parent) {
    rlBar_ = new Surface(Surface::Fill::Panel, Surface::Top, parent);
    auto* row = new QHBoxLayout(rlBar_);
    row->setContentsMargins(12, 6, 12, 6);
    auto* words = new TextLabel(tr("Curves of all steps, the memory of each and its answers are in the view RL."),
                                TypeRole::Table, TextColor::Text2, false, rlBar_);
    words->setElide(true);
    auto* open = new QPushButton(icon(QStringLiteral("rl")), tr("Open RL"), rlBar_);
    setControlHeight(open, 24);
    row->addWidget(words, 1);
    row->addWidget(open);
    rlBar_->hide();
    connect(open, &QPushButton::clicked, this, [this] { emit openView(QStringLiteral("rl")); });
    return rlBar_;
}

void RunView::onRuns() {
    if (follow_ && runInfo(liveRun_) != nullptr) {
        follow_ = false;
        document()->setRunA(liveRun_);
    }
    refresh();
}

void RunView::onEvents(sessions::RunId run) {
    live_->setTimeline(timelineOf(run).timeline);
}

void RunView::refresh() {
    live_->setRuns(document()->runs(), runA());
    live_->setTimeline(timelineOf(runA()).timeline);
    const bool running = context().runs != nullptr && context().runs->running();
    if (!running && runA() != textRun_) {
        showSaved();
    }
    updateNumbers();
}

void RunView::showSaved() {
    const sessions::RunInfo* run = runInfo(runA());
    if (run == nullptr) {
        if (textRun_ > 0) {
            text_->clearText();
        }
        rlBar_->hide();
        textRun_ = -1;
        return;
    }
    textRun_ = run->id;
    fillForm(*run);
    showTexts(*run, {});
    readingTexts_ = true;
    document()->readTexts(run->id, this, [this, id = run->id](const std::vector<sessions::RunText>& texts) {
        readingTexts_ = false;
        const sessions::RunInfo* now = runInfo(id);
        if (id == textRun_ && now != nullptr && !texts.empty()) {
            showTexts(*now, texts);
        }
    });
}

void RunView::fillForm(const sessions::RunInfo& run) {
    const QString spec = textOf(run.specJson);
    const auto experiment = engine::Experiment::read(run.specJson);
    if (formTouched() || !experiment || !startsHere(std::string(experiment->workload().name))) {
        return; // what the user has typed is not taken away
    }
    form_.load(spec);
    fields_->stack()->clear();
    promptTyped_ = false;
}

void RunView::showTexts(const sessions::RunInfo& run, const std::vector<sessions::RunText>& texts) {
    text_->clearText();
    text_->setFollowing(false); // read from its begin
    const auto add = [&](const std::string& kind, const QString& title, bool dimmed) {
        for (const sessions::RunText& text : texts) {
            if (text.kind == kind && !text.body.empty()) {
                text_->addSection(title, dimmed);
                text_->appendText(QString::fromStdString(text.body));
            }
        }
    };
    add("prompt", tr("user"), false);
    const std::vector<StreamedToken> tokens = savedTokens(texts);
    const bool readable = std::any_of(tokens.begin(), tokens.end(), [](const auto& t) { return !t.text.isEmpty(); });
    if (readable) {
        text_->appendTokens(tokens);
    } else {
        add("output.analysis", tr("analysis"), true);
        add("output.commentary", tr("commentary"), true);
        add("output", tr("answer"), false);
    }
    if (!run.error.empty()) {
        text_->addSection(statusText(run.status), false);
        text_->appendText(QString::fromStdString(run.error));
    }
    const bool written = readable || std::any_of(texts.begin(), texts.end(), [](const sessions::RunText& text) {
                             return text.kind.starts_with("output") && !text.body.empty();
                         });
    const std::vector<RlResultPart> steps = rlResultParts(run);
    for (const RlResultPart& part : steps) {
        text_->addSection(part.title, part.dimmed);
        text_->appendText(part.text);
    }
    rlBar_->setVisible(isRlRun(run));
    if (!written && steps.empty()) { // the numbers are the result
        text_->addSection(tr("Result of %1").arg(runTitle(run)), false);
        QStringList lines = batchSentences(run);
        if (!lines.empty()) {
            lines << QString();
        }
        for (const JsonRow& row : jsonRows(run.metricsJson, kSummaryRows)) {
            if (row.key.startsWith(QLatin1String("error.")) || row.value.isEmpty()) {
                continue; // said above in a sentence
            }
            lines << row.key + QStringLiteral(": ") + row.value;
        }
        text_->appendText(lines.join(QLatin1Char('\n')));
    }
    text_->moveCursor(QTextCursor::Start);
}

void RunView::updateNumbers() {
    const sessions::RunInfo* run = runInfo(runA());
    const bool running = context().runs != nullptr && context().runs->running();
    live_->setRoofline(running || run == nullptr ? std::nullopt : profiler::rooflineSummary(run->metricsJson));
    if (running || run == nullptr || run->id == liveRun_) {
        live_->setNumbers(running ? tr("Live") : tr("Last run"), numbers_);
        return;
    }
    LiveNumbers saved;
    saved.state = statusText(run->status);
    saved.ending = endingText(run->metricsJson, run->specJson);
    saved.tokensPerSecond = runTokensPerSecond(*run);
    saved.firstTokenSeconds = runMetric(*run, repliesToTrace(*run) ? "ttft.p50" : "prefill_seconds");
    saved.peakBytes = runSummary(*run).peak;
    const auto whole = [&](const char* name) {
        const auto value = runMetric(*run, name);
        return value && *value >= 0 ? std::optional(static_cast<std::uint64_t>(*value)) : std::nullopt;
    };
    saved.tokens = whole("generated_tokens");
    saved.kvBytes = whole("kv_bytes");
    live_->setNumbers(tr("Run %1").arg(run->id), saved);
}

} // namespace vitrine::ui
