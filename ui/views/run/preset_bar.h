// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Forms kept under a name, and the models that were run last: both in the settings file.

#include <functional>

#include "ui/widgets/base/controls.h"

class QComboBox;
class QPushButton;

namespace vitrine::ui {

class PresetBar final : public Surface {
    Q_OBJECT

public:
    /// `experiment` is the form's value as JSON text. Without a settings file nothing can be kept.
    PresetBar(const QString& settingsFile, std::function<QString()> experiment, QWidget* parent);

    QComboBox* list() const { return list_; }
    QPushButton* saveButton() const { return save_; }

signals:
    void chosen(const QString& experimentJson);

private:
    void load();
    void save();

    QString settingsFile_;
    std::function<QString()> experiment_;
    QComboBox* list_;
    QPushButton* save_;
};

/// Models to choose from: those that were run last, the shipped demo model, then the synthetic ones.
QStringList knownModels(const QString& settingsFile);
/// The folder of the shipped demo model; empty where it is not installed.
QString demoModel();
void rememberModel(const QString& settingsFile, const QString& model);

} // namespace vitrine::ui
