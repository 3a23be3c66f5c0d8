// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/run/run_view.h"

#include <QApplication>
#include <QClipboard>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/format.h"
#include "ui/views/run/fit_line.h"
#include "ui/views/run/preset_bar.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/option_form.h"
#include "ui/widgets/plots/token_text.h"

namespace vitrine::ui {

namespace {

constexpr int kFormWidth = 320;
constexpr int kTokenPeriodMs = 33;

/// What a first run needs, and the order of what else there is.
OptionLayout rlLayout() {
    OptionLayout out;
    for (const char* key : {"model", "task", "difficulty", "data", "checker", "method", "prompts", "samples",
                            "max_new_tokens", "lr", "steps", "eval_every"}) {
        out.basic << QString::fromLatin1(key);
    }
    for (const char* group : {"Problems", "Rollouts", "Policy", "Training", "Memory"}) { // names of the option table
        out.firstGroups << QString::fromLatin1(group);
    }
    return out;
}

} // namespace

RunView::RunView(const ViewServices& context, QWidget* parent)
    : DocumentView(QStringLiteral("run"), tr("Run"), context, parent), workloads_(engine::workloadsOfForm("run")),
      live_(new LivePanel(this)) {
    form_.setText(QStringLiteral("logprobs"), QStringLiteral("5")); // the tool tips of tokens need them
    fit_ = new FitLine(context.runs, [this] { return form_.priceableText(); }, this);
    buildHeader();
    auto* body = new QWidget(this);
    auto* row = new QHBoxLayout(body);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(buildFormColumn());
    row->addWidget(buildCentre(), 1);
    setBody(body);
    showEmpty({});
    tokenTimer_.setSingleShot(true);
    tokenTimer_.setInterval(kTokenPeriodMs);
    connect(&tokenTimer_, &QTimer::timeout, this, &RunView::flushTokens);
    connect(&form_, &ExperimentForm::changedText, this, &RunView::onFormReloaded);
    connect(&form_, &ExperimentForm::reloaded, this, &RunView::onFormReloaded);
    connect(live_, &LivePanel::runWanted, this, [this](qint64 run) { document()->setRunA(run); });
    connectRuns();
    if (context.devices != nullptr) {
        connect(context.devices, &DeviceFeed::choiceChanged, this, &RunView::takeDevice);
        connect(context.devices, &DeviceFeed::devicesChanged, this, &RunView::showFormsDevice);
    }
    onFormReloaded();
    followDocument();
}

void RunView::buildHeader() {
    QStringList titles;
    for (const engine::Workload* workload : workloads_) {
        titles << tr(std::string(workload->title).c_str());
    }
    titles << tr("Queue");
    segments_ = header()->addSegments(titles, tr("Workload"));
    connect(segments_, &SegmentedControl::currentChanged, this, [this](int index) {
        if (index == static_cast<int>(workloads_.size())) {
            showFormsWorkload(); // the queue is a view of its own, this page keeps its place
            emit openView(QStringLiteral("queue"));
        } else if (!filling_) {
            form_.setWorkload(textOf(workloads_[static_cast<std::size_t>(index)]->name));
        }
    });
    preview_ = new QPushButton(tr("Preview command"), this);
    preview_->setCheckable(true);
    run_ = new QPushButton(icon(QStringLiteral("run")), tr("Run"), this);
    setPrimary(run_);
    for (QPushButton* button : {preview_, run_}) {
        setControlHeight(button, 24);
    }
    header()->addRightControl(fit_->sentence());
    header()->addRightControl(fit_->whyButton());
    header()->addRightControl(preview_);
    header()->addRightControl(run_);
    connect(preview_, &QPushButton::toggled, this, [this](bool on) { commandBox_->setVisible(on); });
    connect(run_, &QPushButton::clicked, this,
            [this] { context().runs != nullptr&& context().runs -> running() ? stop() : start(); });
}

QWidget* RunView::buildFormColumn() {
    auto* panel = new Surface(Surface::Fill::Panel, Surface::Right, this);
    panel->setFixedWidth(kFormWidth);
    auto* column = new QVBoxLayout(panel);
    column->setContentsMargins(0, 10, 1, 0);
    column->setSpacing(4);
    column->addWidget(fit_->details());
    fields_ = new OptionForm(
        &form_, {QStringLiteral("prompt"), QStringLiteral("max_context"), QStringLiteral("max_batch")}, panel);
    fields_->setChoices(QStringLiteral("model"), knownModels(context().settingsFile), tr("Folder or synthetic:NAME"));
    fields_->setChoices(
        QStringLiteral("trace"),
        {QStringLiteral("fixed"), QStringLiteral("uniform"), QStringLiteral("poisson"), QStringLiteral("long-tail")},
        tr("Made trace or file"));
    fields_->setLayout(QStringLiteral("rl"), rlLayout());
    column->addWidget(fields_, 1);
    presets_ = new PresetBar(context().settingsFile, [this] { return textOf(form_.experimentText()); }, panel);
    column->addWidget(presets_);
    connect(presets_, &PresetBar::chosen, this, &RunView::takeExperiment);
    connect(fields_, &OptionForm::chooseWanted, this, &RunView::chooseFile);
    return panel;
}

QWidget* RunView::buildCentre() {
    auto* centre = new QWidget(this);
    auto* column = new QVBoxLayout(centre);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    text_ = new TokenText(centre);
    text_->setAccessibleName(tr("Text of the run"));
    column->addWidget(text_, 1);
    column->addWidget(buildRlBar(centre));
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
            promptTyped_ = true;
            form_.setText(QStringLiteral("prompt"), prompt_->toPlainText());
        }
    });
    connect(send_, &QPushButton::clicked, run_, &QPushButton::click);
    return centre;
}

bool RunView::startsHere(const std::string& workload) const {
    return std::ranges::find(workloads_, engine::findWorkload(workload)) != workloads_.end();
}

void RunView::showFormsWorkload() {
    const auto workload = std::ranges::find(workloads_, form_.row());
    segments_->setCurrent(workload == workloads_.end() ? 0 : static_cast<int>(workload - workloads_.begin()));
}

void RunView::showPage(const QString& page) {
    const auto index = static_cast<std::size_t>(page.toUInt());
    if (index < workloads_.size() && workloads_[index] != form_.row()) {
        form_.setWorkload(textOf(workloads_[index]->name));
    }
}

void RunView::onFormReloaded() {
    filling_ = true;
    showFormsWorkload();
    promptBox_->setVisible(form_.applies(QStringLiteral("prompt")));
    if (prompt_->toPlainText() != form_.text(QStringLiteral("prompt"))) {
        prompt_->setPlainText(form_.text(QStringLiteral("prompt")));
    }
    filling_ = false;
    setAlarming(prompt_, false);
    prompt_->setEnabled(form_.promptUsed());
    const std::string hint(form_.row() != nullptr ? form_.row()->promptHint : std::string_view());
    prompt_->setPlaceholderText(!form_.promptUsed() ? tr("The form names another input, so there is no prompt.")
                                : hint.empty()      ? tr("Prompt. Ctrl+Return runs it.")
                                                    : tr(hint.c_str()));
    command_->setPlainText(commandText());
    updateButtons();
    showFormsDevice();
    if (isVisible()) {
        fit_->refresh(); // prices are made one at a time: a view that is not seen leaves them to the others
    }
}

QString RunView::commandText() const {
    ExperimentForm shown;
    shown.load(textOf(form_.experimentText()));
    return shown.commandLine();
}

void RunView::updateButtons() {
    const bool can = context().runs != nullptr;
    const bool running = can && context().runs->running();
    for (QPushButton* button : {run_, send_}) {
        button->setText(running ? tr("Stop") : tr("Run"));
        button->setEnabled(can);
        button->setToolTip(!can ? tr("Nothing can be started here") : running ? tr("Esc") : tr("Ctrl+Return"));
    }
    text_->setPlaceholderText(placeholderText(running));
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
    if (action == QLatin1String("run.queue") && form_.problem().second.isEmpty()) {
        emit queueWanted(textOf(form_.experimentText()));
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
    return DocumentView::perform(action);
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
    return promptBox_->isHidden() ? QList<QWidget*>{fields_, text_} : QList<QWidget*>{fields_, text_, prompt_};
}

void RunView::activated() {
    DocumentView::activated();
    fit_->refresh();
    promptBox_->isHidden() ? fields_->setFocus() : prompt_->setFocus();
}

bool RunView::formTouched() const {
    return formGiven_ || promptTyped_ || fields_->stack()->canUndo();
}

void RunView::takeExperiment(const QString& experimentJson) {
    const QString error = form_.load(experimentJson);
    fields_->stack()->clear();
    formGiven_ = true;
    showError(error);
    if (!startsHere(form_.workload().toStdString())) {
        showError(tr("%1 runs are started from the command line: vitrine run").arg(form_.workload()));
        form_.setWorkload(textOf(workloads_.front()->name));
    }
}

void RunView::takeFolder(const QString& path) {
    formGiven_ = true;
    fields_->edit(QStringLiteral("model"), path);
}

void RunView::chooseFile(const QString& key) {
    const bool written = key == QLatin1String("outputs") || key == QLatin1String("save_trace");
    const QString path = key == QLatin1String("model")
                             ? QFileDialog::getExistingDirectory(this, tr("Choose a model folder"))
                         : written ? QFileDialog::getSaveFileName(this, tr("Choose a file to write"))
                                   : QFileDialog::getOpenFileName(this, tr("Choose a file"));
    if (!path.isEmpty()) {
        fields_->edit(key, path);
    }
}

void RunView::takeDevice() {
    if (choosing_) {
        return;
    }
    choosing_ = true;
    const std::vector<DeviceEntry> known = context().devices->devices();
    const int choice = context().devices->choice();
    const bool named = choice >= 0 && choice < static_cast<int>(known.size());
    const DeviceEntry* device = named ? &known[static_cast<std::size_t>(choice)] : nullptr;
    const std::pair<const char*, QString> values[] = {
        {"backend", device != nullptr ? device->backend : ExperimentForm::defaultText(QStringLiteral("backend"))},
        {"device", device != nullptr && device->gpu() ? QString::number(device->ordinal)
                                                      : ExperimentForm::defaultText(QStringLiteral("device"))}};
    for (const auto& [key, text] : values) {
        fields_->edit(QString::fromLatin1(key), text);
    }
    choosing_ = false;
}

void RunView::showFormsDevice() {
    if (context().devices == nullptr || choosing_) {
        return;
    }
    const QString backend = form_.text(QStringLiteral("backend"));
    const int ordinal = form_.text(QStringLiteral("device")).toInt();
    if (backend == QLatin1String("meta")) {
        return; // that needs no device
    }
    choosing_ = true;
    int choice = -1;
    const bool automatic = !form_.changed(QStringLiteral("backend")) && !form_.changed(QStringLiteral("device"));
    const std::vector<DeviceEntry> known = context().devices->devices();
    for (std::size_t i = 0; i < known.size() && !automatic && choice < 0; ++i) {
        const bool named = backend == known[i].backend || (known[i].gpu() && !form_.changed(QStringLiteral("backend")));
        if (named && (!known[i].gpu() || known[i].ordinal == ordinal)) {
            choice = static_cast<int>(i);
        }
    }
    context().devices->choose(choice);
    choosing_ = false;
}

bool RunView::settled() const {
    return !readingTexts_ && fit_->settled();
}

QString RunView::fitText() const {
    return fit_->sentence()->text();
}

} // namespace vitrine::ui
