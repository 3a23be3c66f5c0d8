// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/session_commands.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>
#include <QMenu>
#include <QMessageBox>
#include <algorithm>
#include <functional>
#include <map>

#include "base/json_values.h"
#include "ui/views/shell/settings_file.h"

namespace vitrine::ui {

namespace {

constexpr int kRecentFiles = 10;

} // namespace

SessionCommands::SessionCommands(const ViewServices& context, const QString& settingsFile, QWidget* window)
    : QObject(window), document_(context.document), runs_(context.runs), settingsFile_(settingsFile), window_(window) {
    if (const auto kept = keptSettings(settingsFile_)) {
        recent_ = kept->value(QStringLiteral("recent")).toStringList();
    }
    connect(document_, &SessionDocument::opened, this, &SessionCommands::keepRecent);
    connect(document_, &SessionDocument::runsChanged, this, &SessionCommands::lookForModel);
    connect(document_, &SessionDocument::selectionChanged, this, &SessionCommands::lookForModel);
    connect(document_, &SessionDocument::closed, this, [this] { leftModels_.clear(); });
    connect(document_, &SessionDocument::copyFailed, this, &SessionCommands::failed);
    connect(document_, &SessionDocument::copySaved, this, &SessionCommands::takeCopy);
}

bool SessionCommands::perform(const QString& action) {
    const std::map<QString, std::function<void()>> commands = {
        {"file.open", [this] { chooseFile(); }},        {"file.new-session", [this] { makeFile(); }},
        {"file.close", [this] { document_->close(); }}, {"file.save-copy", [this] { chooseCopy(); }},
        {"edit.rename", [this] { renameRun(); }},       {"run.again", [this] { runAgain(); }},
    };
    const auto found = commands.find(action);
    if (found != commands.end()) {
        found->second();
    }
    return found != commands.end();
}

void SessionCommands::setRecentMenu(QMenu* menu) {
    recentMenu_ = menu;
    fillRecentMenu();
}

void SessionCommands::keepRecent() {
    if (!QFileInfo::exists(document_->path())) {
        return;
    }
    recent_.removeAll(document_->path());
    recent_.prepend(document_->path());
    recent_.resize(std::min<qsizetype>(recent_.size(), kRecentFiles));
    if (const auto keep = keptSettings(settingsFile_)) {
        keep->setValue(QStringLiteral("recent"), recent_);
    }
    fillRecentMenu();
}

void SessionCommands::fillRecentMenu() {
    recentMenu_->clear();
    for (const QString& path : recent_) {
        QAction* action = recentMenu_->addAction(QFileInfo(path).fileName());
        action->setToolTip(path);
        action->setEnabled(QFileInfo::exists(path));
        connect(action, &QAction::triggered, this, [this, path] { emit openWanted(path); });
    }
    recentMenu_->setEnabled(!recent_.isEmpty());
}

void SessionCommands::chooseFile() {
    const QString path =
        QFileDialog::getOpenFileName(window_, tr("Open"), QFileInfo(document_->path()).path(),
                                     tr("Sessions, models, rows to train on (*.vitrine *.gguf *.jsonl);;"
                                        "All files (*)"));
    if (!path.isEmpty()) {
        emit openWanted(path);
    }
}

void SessionCommands::lookForModel() {
    const QString name = document_->missingModel(document_->runA());
    emit modelMissing(name.isEmpty() || leftModels_.contains(name)
                          ? QString()
                          : tr("The model %1 of run %2 is not here; say where it is now, and all runs of the session "
                               "that name it find it.")
                                .arg(name)
                                .arg(document_->runA()));
}

void SessionCommands::findModel() {
    const QString name = document_->missingModel(document_->runA()), beside = QFileInfo(document_->path()).path();
    const QString path =
        name.endsWith(QLatin1String(".gguf"))
            ? QFileDialog::getOpenFileName(window_, tr("Find the model %1").arg(name), beside, tr("Models (*.gguf)"))
            : QFileDialog::getExistingDirectory(window_, tr("Find the folder of the model %1").arg(name), beside);
    if (!name.isEmpty() && !path.isEmpty()) {
        document_->placeModel(name, path);
    }
}

void SessionCommands::leaveModel() {
    leftModels_ << document_->missingModel(document_->runA());
    lookForModel();
}

void SessionCommands::makeFile() {
    QString path = QFileDialog::getSaveFileName(window_, tr("New session"), QFileInfo(document_->path()).path(),
                                                tr("Vitrine sessions (*.vitrine)"));
    if (path.isEmpty()) {
        return;
    }
    if (!path.endsWith(QLatin1String(".vitrine"))) {
        path += QLatin1String(".vitrine");
    }
    try {
        sessions::SessionFile::open(path.toStdString(), sessions::OpenMode::CreateOrOpen);
    } catch (const std::exception& error) {
        emit failed(QString::fromUtf8(error.what()));
        return;
    }
    emit openWanted(path);
}

void SessionCommands::chooseCopy() {
    if (!document_->isOpen()) {
        return;
    }
    const QFileInfo file(document_->path());
    QString path = QFileDialog::getSaveFileName(
        window_, tr("Save a copy"), file.dir().filePath(tr("%1 copy.vitrine").arg(file.completeBaseName())),
        tr("Vitrine sessions (*.vitrine)"), nullptr, QFileDialog::DontConfirmOverwrite);
    if (path.isEmpty()) {
        return;
    }
    if (!path.endsWith(QLatin1String(".vitrine"))) {
        path += QLatin1String(".vitrine"); // asked about below: the dialog saw another name
    }
    const bool exists = QFileInfo::exists(path);
    if (exists && QFileInfo(path).canonicalFilePath() != file.canonicalFilePath() &&
        QMessageBox::question(window_, tr("Save a copy"),
                              tr("Replace %1? The runs in it will be gone.").arg(QFileInfo(path).fileName()),
                              QMessageBox::Cancel | QMessageBox::Save, QMessageBox::Cancel) != QMessageBox::Save) {
        return;
    }
    document_->saveCopy(path, exists);
}

/// The copy takes the place of a session that is not saved, unless a run still writes to that.
void SessionCommands::takeCopy(const QString& path) {
    const auto& runs = document_->runs();
    const bool live = std::any_of(runs.begin(), runs.end(), [](const sessions::RunInfo& run) {
        return run.status == sessions::RunStatus::Running;
    });
    if (document_->keeping().endangered() && !live) {
        emit openWanted(path);
    }
}

void SessionCommands::runAgain() {
    const sessions::RunInfo* run = document_->run(document_->runA());
    if (run == nullptr || runs_ == nullptr || runs_->running()) {
        return;
    }
    if (!base::holdsObject(run->specJson)) {
        emit failed(tr("Run %1 has no experiment that can be started again.").arg(run->id));
        return;
    }
    runs_->start(run->specJson, document_->path());
}

void SessionCommands::renameRun() {
    const sessions::RunInfo* run = document_->run(document_->runA());
    if (run == nullptr || document_->readOnly()) {
        return;
    }
    bool ok = false;
    const QString name = QInputDialog::getText(window_, tr("Rename run"), tr("Name"), QLineEdit::Normal,
                                               QString::fromStdString(run->name), &ok);
    if (ok) {
        document_->edit(
            [id = run->id, text = name.toStdString()](sessions::SessionFile& file) { file.renameRun(id, text); });
    }
}

} // namespace vitrine::ui
