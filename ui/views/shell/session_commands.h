// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The commands about session files: opening one, making one, saving a copy, the menu of recent ones, renaming run A,
// and starting it again.

#include <QObject>
#include <QStringList>

#include "ui/widgets/base/view.h"

class QMenu;

namespace vitrine::ui {

class SessionCommands final : public QObject {
    Q_OBJECT

public:
    /// Dialogs open over `window`. `settingsFile` empty keeps no list of recent files.
    SessionCommands(const ViewServices& context, const QString& settingsFile, QWidget* window);

    bool perform(const QString& action); ///< false: not one of these commands
    /// The menu that lists the recent files from now on.
    void setRecentMenu(QMenu* menu);
    /// Files that were opened, newest first.
    const QStringList& recentFiles() const { return recent_; }

    void findModel();  ///< asks where the model of run A is now, for all runs of the session that name it
    void leaveModel(); ///< asks no more for the model of run A while the session is open

signals:
    void openWanted(const QString& path);
    void failed(const QString& error); ///< a sentence for people
    /// A sentence about the model of run A where it was not found; else empty.
    void modelMissing(const QString& sentence);

private:
    void chooseFile();
    void makeFile();
    void chooseCopy();
    void takeCopy(const QString& path);
    void renameRun();
    void runAgain();
    void lookForModel();
    void keepRecent();
    void fillRecentMenu();

    SessionDocument* document_;
    RunController* runs_;
    QString settingsFile_;
    QWidget* window_;
    QMenu* recentMenu_ = nullptr;
    QStringList recent_;
    QStringList leftModels_; ///< for which people do not want to be asked
};

} // namespace vitrine::ui
