// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/run/preset_bar.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QInputDialog>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>

#include "base/error.h"
#include "base/resource_path.h"
#include "engine/checkpoint/checkpoint.h"

namespace vitrine::ui {

namespace {

constexpr int kRecentModels = 8;
constexpr char kRecentKey[] = "run/models";
constexpr char kPresetGroup[] = "presets";

} // namespace

PresetBar::PresetBar(const QString& settingsFile, std::function<QString()> experiment, QWidget* parent)
    : Surface(Surface::Fill::Panel, Surface::Top, parent), settingsFile_(settingsFile),
      experiment_(std::move(experiment)) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(12, 7, 12, 6);
    row->setSpacing(8);
    list_ = new QComboBox(this);
    list_->setAccessibleName(tr("Preset"));
    save_ = new QPushButton(tr("Save preset"), this);
    save_->setEnabled(!settingsFile.isEmpty());
    save_->setToolTip(settingsFile.isEmpty() ? tr("There is no settings file to keep it in") : QString());
    row->addWidget(list_, 1);
    row->addWidget(save_);
    connect(list_, &QComboBox::activated, this, [this](int index) {
        if (const QString json = list_->itemData(index).toString(); !json.isEmpty()) {
            emit chosen(json);
        }
    });
    connect(save_, &QPushButton::clicked, this, &PresetBar::save);
    load();
}

void PresetBar::load() {
    list_->clear();
    list_->addItem(tr("Preset"));
    if (!settingsFile_.isEmpty()) {
        QSettings settings(settingsFile_, QSettings::IniFormat);
        settings.beginGroup(QLatin1String(kPresetGroup));
        for (const QString& name : settings.childKeys()) {
            list_->addItem(name, settings.value(name).toString());
        }
    }
    list_->setEnabled(list_->count() > 1);
    list_->setToolTip(list_->isEnabled() ? tr("Fill the form from a preset") : tr("No preset is saved yet"));
}

void PresetBar::save() {
    bool ok = false;
    QString name = QInputDialog::getText(this, tr("Save preset"), tr("Name"), QLineEdit::Normal, {}, &ok).trimmed();
    name.replace(QLatin1Char('/'), QLatin1Char('-'));
    if (!ok || name.isEmpty()) {
        return;
    }
    QSettings settings(settingsFile_, QSettings::IniFormat);
    settings.beginGroup(QLatin1String(kPresetGroup));
    settings.setValue(name, experiment_());
    settings.endGroup();
    settings.sync();
    load();
    list_->setCurrentIndex(list_->findText(name));
}

QString demoModel() {
    try {
        return QString::fromStdString(base::resourcePath("models/vitrine-demo"));
    } catch (const base::BadInput&) {
        return {}; // installed without it
    }
}

QStringList knownModels(const QString& settingsFile) {
    QStringList models;
    if (!settingsFile.isEmpty()) {
        models = QSettings(settingsFile, QSettings::IniFormat).value(QLatin1String(kRecentKey)).toStringList();
    }
    if (const QString demo = demoModel(); !demo.isEmpty()) {
        models << demo;
    }
    for (const std::string& name : engine::syntheticNames()) {
        models << QStringLiteral("synthetic:") + QString::fromStdString(name);
    }
    models.removeDuplicates();
    return models;
}

void rememberModel(const QString& settingsFile, const QString& model) {
    if (settingsFile.isEmpty() || model.isEmpty() || model.startsWith(QLatin1String("synthetic:"))) {
        return;
    }
    QSettings settings(settingsFile, QSettings::IniFormat);
    QStringList recent = settings.value(QLatin1String(kRecentKey)).toStringList();
    recent.removeAll(model);
    recent.prepend(model);
    settings.setValue(QLatin1String(kRecentKey), recent.mid(0, kRecentModels));
}

} // namespace vitrine::ui
