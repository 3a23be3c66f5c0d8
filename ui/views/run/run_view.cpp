// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/run/run_view.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDateTime>
#include <QDir>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QInputDialog>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/checkpoint.h"
#include "ui/models/format.h"
#include "ui/models/json_rows.h"
#include "ui/models/run_facts.h"
#include "ui/models/run_filter.h"
#include "ui/widgets/budget_bar.h"
#include "ui/widgets/icons.h"
#include "ui/widgets/option_form.h"
#include "ui/widgets/style.h"
#include "ui/widgets/token_text.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

constexpr int kFormWidth = 320;
constexpr int kPriceDelayMs = 150;
constexpr int kTokenPeriodMs = 33;
constexpr int kRecentModels = 8;
constexpr std::size_t kSummaryRows = 40;
constexpr char kRecentKey[] = "run/models";
constexpr char kPresetGroup[] = "presets";
const char* const kInputs[] = {"chat", "tokens", "tokens_file", "prompt_length"};

std::optional<std::uint64_t> bytesOf(const Json& metrics, const char* key) {
    const auto found = metrics.find(key);
    return found != metrics.end() && found->is_number() && found->get<double>() >= 0
               ? std::optional(std::uint64_t(found->get<double>()))
               : std::nullopt;
}

/// "17.4", one decimal: the fit line is an estimate.
QString roughGib(std::uint64_t bytes) {
    return QString::number(double(bytes) / double(1ULL << 30), 'f', 1);
}

} // namespace

RunView::RunView(const ViewContext& context, QWidget* parent)
    : View(QStringLiteral("run"), tr("Run"), context, parent), live_(new LivePanel(this)) {
    form_.setText(QStringLiteral("logprobs"), QStringLiteral("5")); // the tool tips of tokens need them
    buildHeader();
    auto* body = new QWidget(this);
    auto* row = new QHBoxLayout(body);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(buildFormColumn());
    row->addWidget(buildCentre(), 1);
    setBody(body);
    showEmpty({});
    priceTimer_.setSingleShot(true);
    priceTimer_.setInterval(kPriceDelayMs);
    connect(&priceTimer_, &QTimer::timeout, this, &RunView::price);
    tokenTimer_.setSingleShot(true);
    tokenTimer_.setInterval(kTokenPeriodMs);
    connect(&tokenTimer_, &QTimer::timeout, this, &RunView::flushTokens);
    connect(&form_, &ExperimentForm::changedText, this, &RunView::onFormChanged);
    connect(&form_, &ExperimentForm::reloaded, this, &RunView::onFormReloaded);
    SessionDocument* document = context.document;
    connect(document, &SessionDocument::selectionChanged, this, &RunView::onSelection);
    connect(document, &SessionDocument::opened, this, &RunView::onSelection);
    connect(document, &SessionDocument::closed, this, &RunView::onSelection);
    connect(document, &SessionDocument::runsChanged, this, [this] {
        if (follow_ && this->context().document->run(liveRun_) != nullptr) {
            follow_ = false;
            this->context().document->setRunA(liveRun_);
        }
        onSelection();
    });
    connect(document, &SessionDocument::timelineChanged, this, [this](qint64 run) {
        if (run == this->context().document->runA()) {
            live_->setTimeline(this->context().document->timeline(run).timeline);
        }
    });
    connect(live_, &LivePanel::runWanted, this, [this](qint64 run) { this->context().document->setRunA(run); });
    connectRuns();
    bar_->hide();
    why_->hide();
    loadPresets();
    onFormReloaded();
    onSelection();
}

void RunView::buildHeader() {
    segments_ = header()->addSegments({tr("Generate"), tr("Load")}, tr("Workload"));
    connect(segments_, &SegmentedControl::currentChanged, this, [this](int index) {
        if (!filling_) {
            form_.setWorkload(index == 0 ? QStringLiteral("generate") : QStringLiteral("load"));
        }
    });
    fit_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    fit_->setElide(true);
    why_ = new QPushButton(tr("Why"), this);
    why_->setCheckable(true);
    why_->setToolTip(tr("What the run would hold at its peak"));
    preview_ = new QPushButton(tr("Preview command"), this);
    preview_->setCheckable(true);
    run_ = new QPushButton(icon(QStringLiteral("run")), tr("Run"), this);
    setPrimary(run_);
    for (QPushButton* button : {why_, preview_, run_}) {
        setControlHeight(button, 24);
    }
    header()->addRightControl(fit_);
    header()->addRightControl(why_);
    header()->addRightControl(preview_);
    header()->addRightControl(run_);
    connect(why_, &QPushButton::toggled, this, [this] { showParts(); });
    connect(preview_, &QPushButton::toggled, this, [this](bool on) { commandBox_->setVisible(on); });
    connect(run_, &QPushButton::clicked, this,
            [this] { context().runs != nullptr&& context().runs -> running() ? stop() : start(); });
}

QWidget* RunView::buildFormColumn() {
    auto* panel = new Surface(Surface::Fill::Panel, Surface::Right, this);
    panel->setFixedWidth(kFormWidth);
    auto* column = new QVBoxLayout(panel);
    column->setContentsMargins(0, 10, 1, 0);
    column->setSpacing(0);
    bar_ = new BudgetBar(true, panel);
    auto* margin = new QHBoxLayout;
    margin->setContentsMargins(12, 0, 12, 4);
    margin->addWidget(bar_);
    column->addLayout(margin);
    parts_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, panel);
    parts_->setWordWrap(true);
    parts_->setContentsMargins(12, 4, 12, 4);
    parts_->hide();
    column->addWidget(parts_);
    fields_ = new OptionForm(
        &form_, {QStringLiteral("prompt"), QStringLiteral("max_context"), QStringLiteral("max_batch")}, panel);
    column->addWidget(fields_, 1);
    auto* foot = new Surface(Surface::Fill::Panel, Surface::Top, panel);
    auto* row = new QHBoxLayout(foot);
    row->setContentsMargins(12, 7, 12, 6);
    row->setSpacing(8);
    presets_ = new QComboBox(foot);
    presets_->setAccessibleName(tr("Preset"));
    auto* save = new QPushButton(tr("Save preset"), foot);
    row->addWidget(presets_, 1);
    row->addWidget(save);
    column->addWidget(foot);
    connect(presets_, &QComboBox::activated, this, &RunView::usePreset);
    connect(save, &QPushButton::clicked, this, &RunView::savePreset);
    connect(fields_, &OptionForm::chooseWanted, this, &RunView::chooseFile);
    QStringList models;
    if (!context().settingsFile.isEmpty()) {
        models =
            QSettings(context().settingsFile, QSettings::IniFormat).value(QLatin1String(kRecentKey)).toStringList();
    }
    for (const std::string& name : engine::syntheticNames()) {
        models << QStringLiteral("synthetic:") + QString::fromStdString(name);
    }
    models.removeDuplicates();
    fields_->setChoices(QStringLiteral("model"), models);
    return panel;
}

QWidget* RunView::buildCentre() {
    auto* centre = new QWidget(this);
    auto* column = new QVBoxLayout(centre);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    text_ = new TokenText(centre);
    text_->setAccessibleName(tr("Text of the run"));
    text_->setPlaceholderText(tr("Choose a model at the left, write a prompt below and run it."));
    column->addWidget(text_, 1);
    commandBox_ = new Surface(Surface::Fill::Panel, Surface::Top, centre);
    auto* commandRow = new QHBoxLayout(commandBox_);
    commandRow->setContentsMargins(12, 8, 12, 8);
    command_ = new QPlainTextEdit(commandBox_);
    command_->setReadOnly(true);
    command_->setAccessibleName(tr("Command line"));
    command_->setFont(Theme::instance().monoFont(TypeRole::Table));
    command_->setFixedHeight(58);
    command_->setTabChangesFocus(true);
    auto* copy = new QPushButton(tr("Copy"), commandBox_);
    commandRow->addWidget(command_, 1);
    commandRow->addWidget(copy, 0, Qt::AlignBottom);
    commandBox_->hide();
    column->addWidget(commandBox_);
    connect(copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(commandText()); });
    promptBox_ = new Surface(Surface::Fill::Panel, Surface::Top, centre);
    auto* row = new QHBoxLayout(promptBox_);
    row->setContentsMargins(12, 8, 12, 8);
    row->setSpacing(8);
    prompt_ = new QPlainTextEdit(promptBox_);
    prompt_->setAccessibleName(tr("Prompt"));
    prompt_->setTabChangesFocus(true);
    prompt_->setFixedHeight(3 * prompt_->fontMetrics().lineSpacing() + 14);
    send_ = new QPushButton(tr("Run"), promptBox_);
    send_->setToolTip(tr("Ctrl+Return; Esc stops"));
    prompt_->installEventFilter(this);
    row->addWidget(prompt_, 1);
    row->addWidget(send_, 0, Qt::AlignBottom);
    column->addWidget(promptBox_);
    connect(prompt_, &QPlainTextEdit::textChanged, this, [this] {
        if (!filling_) {
            form_.setText(QStringLiteral("prompt"), prompt_->toPlainText());
        }
    });
    connect(send_, &QPushButton::clicked, run_, &QPushButton::click);
    return centre;
}

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
        const QString share = total > 0 ? shareText(double(done) / double(total)) : countText(qint64(done));
        numbers_.state = tr("%1, %2").arg(what, share);
        setReadout(numbers_.state);
        updateNumbers();
    });
    connect(runs, &RunController::token, this, [this](const StreamedToken& token) {
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
            numbers_.kvBytes = std::uint64_t(value);
        }
        if (!tokenTimer_.isActive()) {
            tokenTimer_.start();
        }
    });
    connect(runs, &RunController::ended, this, &RunView::onEnded);
    connect(runs, &RunController::priced, this, &RunView::onPriced);
}

bool RunView::promptUsed() const {
    return form_.workload() == QLatin1String("generate") &&
           std::none_of(std::begin(kInputs), std::end(kInputs),
                        [this](const char* key) { return form_.changed(QString::fromLatin1(key)); });
}

Json RunView::experiment() const {
    Json made = form_.experiment();
    if (!promptUsed()) {
        made.erase("prompt");
    }
    return made;
}

QString RunView::sessionFile() {
    const SessionDocument* document = context().document;
    if (document->isOpen() && !document->readOnly()) {
        return document->path();
    }
    QString folder = sessionFolder_;
    if (folder.isEmpty()) {
        folder = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation) + QStringLiteral("/Vitrine");
    }
    QDir().mkpath(folder);
    return folder + QDateTime::currentDateTime().toString(QStringLiteral("'/session-'yyyyMMdd-HHmmss'.vitrine'"));
}

void RunView::start() {
    RunController* runs = context().runs;
    if (runs == nullptr || runs->running()) {
        return;
    }
    showError({});
    const auto [key, wrong] = form_.problem();
    const bool hidden = !promptUsed() && key == QLatin1String("prompt");
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
    const QString file = sessionFile();
    const bool fresh = file != context().document->path();
    text_->clearText();
    if (promptUsed()) {
        text_->addSection(tr("user"), false);
        text_->appendText(form_.text(QStringLiteral("prompt")));
    }
    follow_ = true;
    liveRun_ = 0;
    numbers_ = {};
    rememberModel();
    runs->start(experiment(), file);
    if (runs->running() && fresh) {
        context().document->open(file);
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
        numbers_ = {};
        follow_ = true;
    }
    liveRun_ = run;
    textRun_ = run;
    numbers_.state = tr("running");
    numbers_.tokens = 0;
    bool number = false;
    const quint64 wanted = form_.text(QStringLiteral("max_new_tokens")).toULongLong(&number);
    if (number && form_.workload() == QLatin1String("generate")) {
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
        numbers_.tokens = std::uint64_t(pending_.back().index) + 1;
        if (textRun_ == liveRun_) {
            text_->appendTokens(pending_);
        }
        pending_.clear();
    }
    updateNumbers();
}

void RunView::onEnded(const QString& status, const QString& error, const QString& metricsJson) {
    flushTokens();
    const Json metrics = Json::parse(metricsJson.toStdString(), nullptr, false);
    numbers_.state = status == QLatin1String("done")            ? tr("done")
                     : status == QLatin1String("cancelled")     ? tr("stopped")
                     : status == QLatin1String("out_of_memory") ? tr("out of memory")
                                                                : tr("failed");
    if (metrics.is_object()) {
        numbers_.peakBytes = bytesOf(metrics, "peak_bytes");
        if (const auto rate = metrics.find("decode_tokens_per_second"); rate != metrics.end() && rate->is_number()) {
            numbers_.tokensPerSecond = rate->get<double>();
        }
        if (const auto kv = bytesOf(metrics, "kv_bytes")) {
            numbers_.kvBytes = kv;
        }
    }
    if (status == QLatin1String("cancelled")) {
        setReadout(tr("Stopped after %1 tokens; what was recorded is kept")
                       .arg(countText(qint64(numbers_.tokens.value_or(0)))));
    } else if (!error.isEmpty()) {
        showError(error,
                  metrics.is_object() && metrics.contains("error")
                      ? QString::fromStdString(metrics["error"].dump(2, ' ', false, Json::error_handler_t::replace))
                      : QString());
        setReadout({});
    } else {
        setReadout(liveRun_ != 0 ? tr("Run %1 is saved").arg(liveRun_) : tr("The run has ended"));
    }
    if (text_->tokenCount() == 0) {
        textRun_ = -1; // no text came: show what the session has
    }
    updateNumbers();
    updateButtons();
    onSelection();
}

void RunView::onFormChanged() {
    onFormReloaded();
}

void RunView::onFormReloaded() {
    filling_ = true;
    segments_->setCurrent(form_.workload() == QLatin1String("load") ? 1 : 0);
    if (prompt_->toPlainText() != form_.text(QStringLiteral("prompt"))) {
        prompt_->setPlainText(form_.text(QStringLiteral("prompt")));
    }
    filling_ = false;
    setAlarming(prompt_, false);
    promptBox_->setVisible(form_.workload() == QLatin1String("generate"));
    prompt_->setEnabled(promptUsed());
    prompt_->setPlaceholderText(promptUsed() ? tr("Prompt. Ctrl+Return runs it.")
                                             : tr("The form names another input, so there is no prompt."));
    command_->setPlainText(commandText());
    updateButtons();
    priceTimer_.start();
}

QString RunView::commandText() const {
    ExperimentForm shown;
    shown.load(QString::fromStdString(experiment().dump(-1, ' ', false, Json::error_handler_t::replace)));
    return shown.commandLine();
}

void RunView::price() {
    RunController* runs = context().runs;
    if (runs == nullptr || form_.text(QStringLiteral("model")).isEmpty()) {
        fit_->clear();
        why_->hide();
        bar_->hide();
        return;
    }
    Json wanted = experiment();
    wanted["plan"] = true;
    const bool input =
        std::any_of(std::begin(kInputs), std::end(kInputs), [&](const char* key) { return wanted.contains(key); });
    if (form_.workload() == QLatin1String("generate") && !input && !wanted.contains("prompt")) {
        wanted["prompt_length"] = 1; // the least that a prompt can be
    }
    ticket_ = runs->price(wanted);
}

void RunView::onPriced(quint64 ticket, const QString& metricsJson, const QString& error) {
    if (ticket != ticket_) {
        return;
    }
    const Json metrics = Json::parse(metricsJson.toStdString(), nullptr, false);
    const bool good = error.isEmpty() && metrics.is_object();
    // 0 stands for unknown: no run needs nothing.
    const std::uint64_t peak = good ? bytesOf(metrics, "peak_bytes").value_or(0) : 0;
    const std::uint64_t budget = good ? bytesOf(metrics, "budget_bytes").value_or(0) : 0;
    bar_->setVisible(peak > 0 && budget > 0);
    why_->setVisible(peak > 0);
    if (peak == 0 || budget == 0) {
        fit_->setText(error.isEmpty() ? QString() : tr("no price: %1").arg(error));
        fit_->setToolTip(error);
        fit_->setColor(TextColor::Text3);
        partsText_.clear();
        showParts();
        return;
    }
    const auto missing = bytesOf(metrics, "short_by_bytes").value_or(0);
    const bool fits = metrics.value("fits", missing == 0);
    fit_->setText(fits ? tr("fits: %1 of %2 GiB").arg(roughGib(peak), roughGib(budget))
                       : tr("Will not fit by %1.").arg(bytesText(missing)));
    fit_->setColor(fits ? TextColor::Text2 : TextColor::Warn);
    fit_->setToolTip(exactBytesText(peak));
    std::vector<BudgetPart> parts;
    QStringList lines;
    if (const auto split = metrics.find("peak_by_category"); split != metrics.end() && split->is_object()) {
        for (int i = 0; i < base::kCategoryCount; ++i) {
            const auto category = static_cast<base::MemoryCategory>(i);
            const auto bytes = bytesOf(*split, std::string(base::categoryName(category)).c_str());
            if (bytes && *bytes > 0) {
                parts.push_back({textOf(base::categoryName(category)), *bytes, themeTokens().category(category)});
                lines << tr("%1 %2").arg(textOf(base::categoryName(category)), bytesText(*bytes));
            }
        }
    }
    bar_->set(std::move(parts), budget, missing, tr("missing"));
    partsText_ = tr("At the peak: %1. Priced for %2.")
                     .arg(lines.join(QStringLiteral(", ")),
                          QString::fromStdString(metrics.value("device", std::string("the device"))));
    showParts();
}

void RunView::showParts() {
    parts_->setText(partsText_);
    parts_->setVisible(why_->isChecked() && !partsText_.isEmpty());
}

void RunView::onSelection() {
    const SessionDocument& document = *context().document;
    live_->setRuns(document.runs(), document.runA());
    const sessions::RunId a = document.runA();
    live_->setTimeline(a != 0 ? context().document->timeline(a).timeline : nullptr);
    const bool running = context().runs != nullptr && context().runs->running();
    if (!running && a != textRun_) {
        showSaved();
    }
    updateNumbers();
}

void RunView::showSaved() {
    const sessions::RunInfo* run = context().document->run(context().document->runA());
    if (run == nullptr) {
        if (textRun_ > 0) {
            text_->clearText();
        }
        textRun_ = -1;
        return;
    }
    textRun_ = run->id;
    showTexts(*run, {});
    readingTexts_ = true;
    context().document->readTexts(run->id, this, [this, id = run->id](const std::vector<sessions::RunText>& texts) {
        readingTexts_ = false;
        const sessions::RunInfo* now = context().document->run(id);
        if (id == textRun_ && now != nullptr && !texts.empty()) {
            showTexts(*now, texts);
        }
    });
}

void RunView::showTexts(const sessions::RunInfo& run, const std::vector<sessions::RunText>& texts) {
    text_->clearText();
    const auto add = [&](const std::string& kind, const QString& title, bool dimmed) {
        for (const sessions::RunText& text : texts) {
            if (text.kind == kind && !text.body.empty()) {
                text_->addSection(title, dimmed);
                text_->appendText(QString::fromStdString(text.body));
            }
        }
    };
    add("prompt", tr("user"), false);
    add("output.analysis", tr("analysis"), true);
    add("output.commentary", tr("commentary"), true);
    add("output", tr("answer"), false);
    if (!run.error.empty()) {
        text_->addSection(statusWords(run.status), false);
        text_->appendText(QString::fromStdString(run.error));
    }
    if (texts.size() < 2) { // no text was written: the numbers are the result
        text_->addSection(tr("Result of %1").arg(runTitle(run)), false);
        QStringList lines;
        for (const JsonRow& row : jsonRows(run.metricsJson, kSummaryRows)) {
            lines << row.key + QStringLiteral(": ") + row.value;
        }
        text_->appendText(lines.join(QLatin1Char('\n')));
    }
    text_->moveCursor(QTextCursor::Start);
}

void RunView::updateNumbers() {
    const sessions::RunInfo* run = context().document->run(context().document->runA());
    const bool running = context().runs != nullptr && context().runs->running();
    if (running || run == nullptr || run->id == liveRun_) {
        live_->setNumbers(running ? tr("Live") : tr("Last run"), numbers_);
        return;
    }
    LiveNumbers saved;
    saved.state = statusWords(run->status);
    saved.tokensPerSecond = runTokensPerSecond(*run);
    saved.firstTokenSeconds = runMetric(*run, "prefill_seconds");
    saved.peakBytes = runFacts(*run).peak;
    const auto whole = [&](const char* name) {
        const auto value = runMetric(*run, name);
        return value && *value >= 0 ? std::optional(std::uint64_t(*value)) : std::nullopt;
    };
    saved.tokens = whole("generated_tokens");
    saved.kvBytes = whole("kv_bytes");
    live_->setNumbers(tr("Run %1").arg(run->id), saved);
}

void RunView::updateButtons() {
    const bool can = context().runs != nullptr;
    const bool running = can && context().runs->running();
    for (QPushButton* button : {run_, send_}) {
        button->setText(running ? tr("Stop") : tr("Run"));
        button->setEnabled(can);
        button->setToolTip(!can ? tr("Nothing can be started here") : running ? tr("Esc") : tr("Ctrl+Return"));
    }
    run_->setIcon(running ? icon(QStringLiteral("stop"), themeTokens().onAccent)
                          : icon(QStringLiteral("run"), themeTokens().onAccent));
}

bool RunView::eventFilter(QObject* watched, QEvent* event) {
    const bool pressed = event->type() == QEvent::KeyPress, asked = event->type() == QEvent::ShortcutOverride;
    if (watched == prompt_ && (pressed || asked)) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
        const bool runs = enter && key->modifiers() & Qt::ControlModifier;
        if (runs || key->key() == Qt::Key_Escape) {
            event->accept(); // the editor would take Ctrl+Return for itself
            if (pressed) {
                runs ? start() : stop();
            }
            return true;
        }
    }
    return View::eventFilter(watched, event);
}

bool RunView::perform(const QString& action) {
    if (action == QLatin1String("run.start")) {
        start();
        return true;
    }
    if (action == QLatin1String("select.clear") || action == QLatin1String("run.stop")) {
        stop();
        return true;
    }
    if (action == QLatin1String("edit.undo") || action == QLatin1String("edit.redo")) {
        action == QLatin1String("edit.undo") ? fields_->stack()->undo() : fields_->stack()->redo();
        return true;
    }
    if (action == QLatin1String("edit.copy")) {
        text_->copy();
        return true;
    }
    return View::perform(action);
}

QString RunView::whyNot(const QString& action) const {
    if (action == QLatin1String("run.start") && context().runs == nullptr) {
        return tr("Nothing can be started here");
    }
    if (action == QLatin1String("edit.undo") && !fields_->stack()->canUndo()) {
        return tr("Nothing was changed here");
    }
    if (action == QLatin1String("edit.redo") && !fields_->stack()->canRedo()) {
        return tr("Nothing was undone here");
    }
    return {};
}

QList<QWidget*> RunView::focusStops() const {
    return {fields_, text_, prompt_};
}

void RunView::activated() {
    prompt_->setFocus();
}

void RunView::takeExperiment(const QString& experimentJson) {
    const QString error = form_.load(experimentJson);
    fields_->stack()->clear();
    showError(error);
    if (form_.workload() != QLatin1String("generate") && form_.workload() != QLatin1String("load")) {
        showError(tr("%1 runs are started from the command line: vitrine run").arg(form_.workload()));
        form_.setWorkload(QStringLiteral("generate"));
    }
}

void RunView::takeFolder(const QString& path) {
    fields_->edit(QStringLiteral("model"), path);
}

void RunView::chooseFile(const QString& key) {
    const QString path = key == QLatin1String("model")
                             ? QFileDialog::getExistingDirectory(this, tr("Choose a model folder"))
                             : QFileDialog::getOpenFileName(this, tr("Choose a file"));
    if (!path.isEmpty()) {
        fields_->edit(key, path);
    }
}

void RunView::rememberModel() {
    const QString model = form_.text(QStringLiteral("model"));
    if (context().settingsFile.isEmpty() || model.isEmpty() || model.startsWith(QLatin1String("synthetic:"))) {
        return;
    }
    QSettings settings(context().settingsFile, QSettings::IniFormat);
    QStringList recent = settings.value(QLatin1String(kRecentKey)).toStringList();
    recent.removeAll(model);
    recent.prepend(model);
    settings.setValue(QLatin1String(kRecentKey), recent.mid(0, kRecentModels));
}

void RunView::loadPresets() {
    presets_->clear();
    presets_->addItem(tr("Preset"));
    if (!context().settingsFile.isEmpty()) {
        QSettings settings(context().settingsFile, QSettings::IniFormat);
        settings.beginGroup(QLatin1String(kPresetGroup));
        for (const QString& name : settings.childKeys()) {
            presets_->addItem(name, settings.value(name).toString());
        }
    }
    presets_->setEnabled(presets_->count() > 1);
    presets_->setToolTip(presets_->isEnabled() ? tr("Fill the form from a preset") : tr("No preset is saved yet"));
}

void RunView::savePreset() {
    bool ok = false;
    const QString name = QInputDialog::getText(this, tr("Save preset"), tr("Name"), QLineEdit::Normal, {}, &ok);
    if (ok && !name.trimmed().isEmpty() && !context().settingsFile.isEmpty()) {
        QSettings settings(context().settingsFile, QSettings::IniFormat);
        settings.beginGroup(QLatin1String(kPresetGroup));
        settings.setValue(name.trimmed().replace(QLatin1Char('/'), QLatin1Char('-')),
                          QString::fromStdString(experiment().dump(-1, ' ', false, Json::error_handler_t::replace)));
        settings.endGroup();
        settings.sync();
        loadPresets();
    }
}

void RunView::usePreset(int index) {
    const QString json = presets_->itemData(index).toString();
    if (!json.isEmpty()) {
        takeExperiment(json);
    }
}

} // namespace vitrine::ui
