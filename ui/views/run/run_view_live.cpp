// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The run that goes on: starting, stopping, tokens and numbers as they come.
#include <QPlainTextEdit>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/batching/batch_runs.h"
#include "ui/models/common/format.h"
#include "ui/models/run/run_result.h"
#include "ui/views/common/session_place.h"
#include "ui/views/run/preset_bar.h"
#include "ui/views/run/run_view.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/option_form.h"
#include "ui/widgets/plots/token_text.h"

namespace vitrine::ui {

void RunView::connectRuns() {
    RunController* runs = context().runs;
    if (runs == nullptr) {
        return;
    }
    connect(runs, &RunController::started, this, &RunView::onStarted);
    connect(runs, &RunController::refused, this, [this](const QString& error) {
        showError(error);
        updateButtons();
    });
    connect(runs, &RunController::progress, this, [this](const QString& what, quint64 done, quint64 total) {
        const QString share = total > 0 ? shareText(static_cast<double>(done) / static_cast<double>(total))
                                        : countText(static_cast<qint64>(done));
        numbers_.state = tr("%1, %2").arg(what, share);
        setReadout(numbers_.state);
        updateNumbers();
    });
    connect(runs, &RunController::token, this, [this](const StreamedToken& token) {
        if (liveBatch_) {
            return; // its numbers say more than one request's text; they come as metrics
        }
        if (token.request == 0) {
            pending_.push_back(token);
        }
        if (!tokenTimer_.isActive()) {
            tokenTimer_.start();
        }
    });
    connect(runs, &RunController::metric, this, [this](const QString& name, double value) {
        if (name == QLatin1String("tokens_per_second")) {
            numbers_.tokensPerSecond = value;
        } else if (name == QLatin1String("kv_bytes") && value >= 0) {
            numbers_.kvBytes = static_cast<std::uint64_t>(value);
        } else if (name == QLatin1String("decode_tokens") && value >= 0 && liveBatch_) {
            numbers_.tokens = static_cast<std::uint64_t>(value);
        }
        if (!tokenTimer_.isActive()) {
            tokenTimer_.start();
        }
    });
    connect(runs, &RunController::ended, this, &RunView::onEnded);
}

QString RunView::placeholderText(bool running) const {
    const bool trains = form_.row() != nullptr && engine::showsIn(*form_.row(), "rl");
    if (!running && trains) {
        return tr("Choose a model, and a task or data to ask, at the left and run it.");
    }
    if (running && !rlBar_->isHidden()) {
        return tr("Answers are sampled, judged and trained on. The RL view shows it step by step.");
    }
    const bool batch = running ? liveBatch_ : form_.row() != nullptr && form_.row()->manyAnswers;
    return !batch ? tr("Choose a model at the left, write a prompt below and run it.")
           : running
               ? tr("Requests are being served. The Batching view shows who has which slot, the KV cache view the "
                    "pages.")
               : tr("Choose a model and a trace of requests at the left and run it.");
}

void RunView::start() {
    RunController* runs = context().runs;
    if (runs == nullptr || runs->running()) {
        return;
    }
    showError({});
    const auto [key, wrong] = form_.problem();
    const bool hidden = !form_.promptUsed() && key == QLatin1String("prompt");
    if (!wrong.isEmpty() && !hidden && key == QLatin1String("prompt")) {
        setReadout(tr("Write a prompt first"));
        prompt_->setFocus();
        setAlarming(prompt_);
        prompt_->viewport()->update();
        return;
    }
    if (!wrong.isEmpty() && fields_->editor(key) != nullptr) {
        fields_->setError(key, wrong);
        fields_->editor(key)->setFocus();
        setReadout(tr("%1: %2").arg(ExperimentForm::label(key), wrong));
        return;
    }
    const QString file = fileForRuns(*document(), sessionFolder_);
    const bool fresh = file != document()->path();
    text_->clearText();
    text_->setFollowing(true);
    if (form_.promptUsed()) {
        text_->addSection(tr("user"), false);
        text_->appendText(form_.text(QStringLiteral("prompt")));
    }
    follow_ = true;
    liveRun_ = 0;
    liveBatch_ = form_.row() != nullptr && form_.row()->manyAnswers;
    numbers_ = {};
    rememberModel(context().settingsFile, form_.text(QStringLiteral("model")));
    runs->start(form_.experimentText(), file);
    if (runs->running()) { // the run keeps the form: the next run that is chosen may fill it
        formGiven_ = promptTyped_ = false;
        fields_->stack()->clear();
    }
    if (runs->running() && fresh) {
        document()->open(file);
        setReadout(tr("The run is saved in %1").arg(file));
    }
    updateButtons();
}

void RunView::stop() {
    if (context().runs != nullptr && context().runs->running()) {
        context().runs->stop();
        setReadout(tr("Stopping the run"));
    }
}

void RunView::onStarted(qint64 run) {
    pending_.clear();
    if (!follow_) { // started elsewhere, by "Run again"
        text_->clearText();
        text_->setFollowing(true);
        numbers_ = {};
        follow_ = true;
        const sessions::RunInfo* again = runInfo(runA());
        liveBatch_ = again != nullptr && repliesToTrace(*again);
        const auto experiment = again != nullptr ? engine::Experiment::read(again->specJson) : std::nullopt;
        if (experiment && experiment->has("prompt")) {
            text_->addSection(tr("user"), false);
            text_->appendText(textOf(experiment->text("prompt")));
        }
    }
    liveRun_ = run;
    textRun_ = run;
    rlBar_->setVisible(form_.row() != nullptr && engine::showsIn(*form_.row(), "rl"));
    numbers_.state = tr("running");
    numbers_.tokens = 0;
    bool number = false;
    const quint64 wanted = form_.text(QStringLiteral("max_new_tokens")).toULongLong(&number);
    if (number && form_.row() != nullptr && form_.row()->needsPrompt) {
        numbers_.wantedTokens = wanted;
    }
    updateNumbers();
    updateButtons();
}

void RunView::flushTokens() {
    if (!pending_.empty()) {
        if (!numbers_.firstTokenSeconds) {
            numbers_.firstTokenSeconds = pending_.front().seconds;
        }
        numbers_.tokens = static_cast<std::uint64_t>(pending_.back().index) + 1;
        if (numbers_.state != tr("running")) { // what was reported about the load is over
            numbers_.state = tr("running");
            setReadout({});
        }
        if (textRun_ == liveRun_) {
            text_->appendTokens(pending_);
        }
        pending_.clear();
    }
    updateNumbers();
}

void RunView::onEnded(const QString& status, const QString& error, const QString& metricsJson) {
    flushTokens();
    const std::optional<RunResult> result = runResult(metricsJson.toStdString());
    numbers_.state = status == QLatin1String("done")            ? tr("done")
                     : status == QLatin1String("cancelled")     ? tr("stopped")
                     : status == QLatin1String("out_of_memory") ? tr("out of memory")
                                                                : tr("failed");
    if (result) {
        numbers_.peakBytes = result->peakBytes;
        numbers_.tokensPerSecond = result->tokensPerSecond ? result->tokensPerSecond : numbers_.tokensPerSecond;
        numbers_.tokens = result->tokens && liveBatch_ ? result->tokens : numbers_.tokens;
        numbers_.kvBytes = result->kvBytes ? result->kvBytes : numbers_.kvBytes;
    }
    if (status == QLatin1String("cancelled")) {
        setReadout(tr("Stopped after %1 tokens; what was recorded is kept")
                       .arg(countText(static_cast<qint64>(numbers_.tokens.value_or(0)))));
    } else if (!error.isEmpty()) {
        showError(error, result ? result->errorDetails : QString());
        setReadout({});
    } else {
        const sessions::RunInfo* run = runInfo(liveRun_);
        const QString ending = run != nullptr ? endingText(metricsJson.toStdString(), run->specJson) : QString();
        numbers_.ending = ending;
        const QString saved = liveRun_ == 0                        ? tr("The run has ended")
                              : document()->keeping().endangered() ? tr("Run %1 is not saved").arg(liveRun_)
                                                                   : tr("Run %1 is saved").arg(liveRun_);
        setReadout(ending.isEmpty() ? saved : tr("%1; it %2").arg(saved, ending));
    }
    if (text_->plainText().isEmpty()) {
        textRun_ = -1; // no text came: show what the session has
    }
    updateNumbers();
    updateButtons();
    refresh();
}

} // namespace vitrine::ui
