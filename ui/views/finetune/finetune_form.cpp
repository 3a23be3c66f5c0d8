// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/finetune_form.h"

#include <QApplication>
#include <QClipboard>
#include <QFileDialog>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>
#include <nlohmann/json.hpp>

#include "engine/workload/experiment/option_table.h"
#include "ui/models/common/format.h"
#include "ui/views/common/session_place.h"
#include "ui/views/run/fit_line.h"
#include "ui/views/run/preset_bar.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/option_form.h"

namespace vitrine::ui {

namespace {

constexpr int kFinetuneFormWidth = 320;
constexpr int kTypingMs = 300;
constexpr const char* kFinetuneWorkload = "finetune";

} // namespace

FinetuneForm::FinetuneForm(const ViewServices& context, QWidget* parent)
    : QWidget(parent), context_(context),
      fit_(new FitLine(context.runs, [this] { return form_.priceableText(); }, this)) {
    form_.setWorkload(QString::fromLatin1(kFinetuneWorkload));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(buildFields());
    row->addWidget(buildText(), 1);
    typing_.setSingleShot(true);
    typing_.setInterval(kTypingMs);
    connect(&typing_, &QTimer::timeout, this, &FinetuneForm::readConfiguration);
    connect(&form_, &ExperimentForm::changedText, this, [this] {
        touched_ = true;
        onEdited();
    });
    connect(&form_, &ExperimentForm::reloaded, this, &FinetuneForm::onEdited);
    onEdited();
}

QWidget* FinetuneForm::buildFields() {
    auto* panel = new Surface(Surface::Fill::Panel, Surface::Right, this);
    panel->setFixedWidth(kFinetuneFormWidth);
    auto* column = new QVBoxLayout(panel);
    column->setContentsMargins(0, 10, 1, 0);
    column->setSpacing(4);
    column->addWidget(fit_->details());
    fields_ = new OptionForm(&form_, {QStringLiteral("max_context"), QStringLiteral("max_batch")}, panel);
    fields_->setChoices(QStringLiteral("model"), knownModels(context_.settingsFile), tr("Folder or synthetic:NAME"));
    fields_->setFirstGroups({QStringLiteral("Model"), QStringLiteral("Training"), QStringLiteral("Memory"),
                             QStringLiteral("Run")}); // names of the option table
    column->addWidget(fields_, 1);
    presets_ = new PresetBar(context_.settingsFile, [this] { return textOf(form_.experimentText()); }, panel);
    column->addWidget(presets_);
    connect(presets_, &PresetBar::chosen, this, [this](const QString& json) { emit failed(take(json, true)); });
    connect(fields_, &OptionForm::chooseWanted, this, &FinetuneForm::chooseFile);
    return panel;
}

QWidget* FinetuneForm::buildText() {
    auto* centre = new Surface(Surface::Fill::Canvas, Surface::None, this);
    auto* column = new QVBoxLayout(centre);
    column->setContentsMargins(16, 12, 16, 12);
    column->setSpacing(8);
    column->addWidget(new TextLabel(tr("Configuration"), TypeRole::Title, TextColor::Text1, true, centre));
    auto* hint = new TextLabel(tr("What differs from the defaults. It can be edited here; saved as a file, vitrine run "
                                  "starts it."),
                               TypeRole::Table, TextColor::Text3, false, centre);
    hint->setWordWrap(true);
    column->addWidget(hint);
    configuration_ = new QPlainTextEdit(centre);
    configuration_->setAccessibleName(tr("Configuration as text"));
    configuration_->setFont(Theme::instance().monoFont(TypeRole::Table));
    configuration_->setTabChangesFocus(true);
    column->addWidget(configuration_, 1);
    error_ = new TextLabel({}, TypeRole::Table, TextColor::Bad, false, centre);
    error_->setWordWrap(true);
    error_->hide();
    column->addWidget(error_);
    column->addWidget(new TextLabel(tr("Command"), TypeRole::Table, TextColor::Text3, false, centre));
    auto* row = new QHBoxLayout;
    command_ = new QPlainTextEdit(centre);
    command_->setReadOnly(true);
    command_->setAccessibleName(tr("Command line"));
    command_->setFont(Theme::instance().monoFont(TypeRole::Table));
    command_->setFixedHeight(58);
    command_->setTabChangesFocus(true);
    auto* copy = new QPushButton(tr("Copy"), centre);
    row->addWidget(command_, 1);
    row->addWidget(copy, 0, Qt::AlignBottom);
    column->addLayout(row);
    connect(copy, &QPushButton::clicked, this, [this] { QApplication::clipboard()->setText(commandText()); });
    connect(configuration_, &QPlainTextEdit::textChanged, this, [this] {
        if (!filling_) {
            typing_.start();
        }
    });
    return centre;
}

void FinetuneForm::onEdited() {
    if (!filling_) {
        showConfiguration();
    }
    command_->setPlainText(commandText());
    if (isVisible()) {
        fit_->refresh(); // prices are made one at a time: a form that is not seen leaves them to the others
    }
}

void FinetuneForm::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    fit_->refresh();
}

void FinetuneForm::showConfiguration() {
    filling_ = true;
    configuration_->setPlainText(QString::fromStdString(form_.experiment().dump(2)));
    error_->hide();
    filling_ = false;
}

void FinetuneForm::readConfiguration() {
    const auto value = nlohmann::json::parse(configuration_->toPlainText().toStdString(), nullptr, false);
    QString wrong;
    if (!value.is_object()) {
        wrong = tr("The text is no JSON object: check its braces, quotes and commas.");
    } else if (value.value("workload", nlohmann::json()) != kFinetuneWorkload) {
        wrong = tr("workload: it must stay \"finetune\" on this page.");
    } else {
        for (const auto& [key, item] : value.items()) {
            if (key != "vitrine" && key != "workload" && engine::findOption(key) == nullptr) {
                wrong = tr("%1: no such option; see vitrine finetune --help.").arg(QString::fromStdString(key));
            }
        }
    }
    if (wrong.isEmpty()) {
        filling_ = true; // the text stays as it is typed
        wrong = form_.load(configuration_->toPlainText());
        filling_ = false;
        fields_->stack()->clear();
        touched_ = true;
    }
    if (wrong.isEmpty()) {
        const auto [key, problem] = form_.problem();
        const bool missing = form_.text(QStringLiteral("model")).isEmpty();
        wrong = problem.isEmpty() || missing ? QString()
                : key.isEmpty()              ? problem
                                             : key + QStringLiteral(": ") + problem;
    }
    error_->setText(wrong);
    error_->setVisible(!wrong.isEmpty());
}

QString FinetuneForm::configurationError() const {
    return error_->isHidden() ? QString() : error_->text();
}

QString FinetuneForm::commandText() const {
    return form_.commandLine();
}

QString FinetuneForm::take(const QString& experimentJson, bool given) {
    const QString error = form_.load(experimentJson);
    touched_ = given;
    if (error.isEmpty() && form_.workload() != QLatin1String(kFinetuneWorkload)) {
        form_.setWorkload(QString::fromLatin1(kFinetuneWorkload));
        return tr("This is no fine-tuning run; what both have in common was taken over.");
    }
    fields_->stack()->clear();
    return error;
}

void FinetuneForm::takeFolder(const QString& path) {
    fields_->edit(QStringLiteral("model"), path);
}

void FinetuneForm::chooseFile(const QString& key) {
    const bool folder = key == QLatin1String("model") || key == QLatin1String("output") ||
                        key == QLatin1String("resume") || key == QLatin1String("adapter");
    const QString path = folder ? QFileDialog::getExistingDirectory(this, tr("Choose a folder"))
                         : key == QLatin1String("save_gradients")
                             ? QFileDialog::getSaveFileName(this, tr("Choose a file to write"))
                             : QFileDialog::getOpenFileName(this, tr("Choose a file"));
    if (!path.isEmpty()) {
        fields_->edit(key, path);
    }
}

bool FinetuneForm::start(const QString& sessionFolder) {
    RunController* runs = context_.runs;
    if (runs == nullptr || runs->running()) {
        return false;
    }
    if (typing_.isActive()) {
        typing_.stop();
        readConfiguration();
    }
    emit failed({});
    if (const auto [key, wrong] = form_.problem(); !wrong.isEmpty()) {
        if (fields_->editor(key) != nullptr) {
            fields_->setError(key, wrong);
            fields_->editor(key)->setFocus();
            emit readoutChanged(tr("%1: %2").arg(ExperimentForm::label(key), wrong));
        } else {
            emit failed(wrong);
        }
        return false;
    }
    const QString file = fileForRuns(*context_.document, sessionFolder);
    const bool fresh = file != context_.document->path();
    // A training that saves nothing is lost with the window; where it goes is shown in the form.
    const QString output = QStringLiteral("output");
    if (form_.applies(output) && form_.text(output).isEmpty() && !form_.plan()) {
        fields_->edit(output, folderForTraining(file));
    }
    rememberModel(context_.settingsFile, form_.text(QStringLiteral("model")));
    runs->start(form_.experimentText(), file);
    if (!runs->running()) {
        return false;
    }
    touched_ = false;
    fields_->stack()->clear();
    if (fresh) {
        context_.document->open(file);
        emit readoutChanged(tr("The run is saved in %1").arg(file));
    }
    return true;
}

QList<QWidget*> FinetuneForm::stops() const {
    return {fields_, configuration_, command_};
}

} // namespace vitrine::ui
