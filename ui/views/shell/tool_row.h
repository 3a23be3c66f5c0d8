// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What stands in the tool bar: the pickers of runs A and B, the buttons of runs, the filters of time, the search field
// and the strip of the device. It decides what of that gives way where the window is narrow.

#include <QWidget>

#include "ui/views/shell/search_field.h"
#include "ui/widgets/base/view.h"

class QPushButton;

namespace vitrine::ui {

class DeviceStrip;
class RunPicker;

class ToolRow final : public QWidget {
    Q_OBJECT

public:
    ToolRow(const ViewServices& context, SearchField::Finder find, QWidget* parent);

    /// `narrow`: buttons without text. `small`: the search field is an icon, too.
    void setNarrow(bool narrow, bool isSmall);
    /// Shows which of the buttons can be used now: Run again, Stop, Why out of memory.
    void setAvailable(bool again, bool stop, bool whyOutOfMemory);

    void setNote(const QString& note); ///< one line of the view, cut where there is no room; empty: none

    SearchField* search() const { return search_; }
    DeviceStrip* device() const { return device_; }
    QWidget* firstStop() const; ///< where F6 stops

signals:
    /// The button that has the focus is about to become unusable. Qt would hand the focus to the next field, where
    /// single keys are typed; whoever takes it prevents that.
    void focusFreed();

protected:
    bool event(QEvent* event) override;

private:
    void addButtons(ActionList& actions);
    void addWhyOutOfMemory(ActionList& actions);
    void fitDevice();

    RunPicker *pickerA_, *pickerB_;
    QPushButton *again_ = nullptr, *stop_ = nullptr, *whyOutOfMemory_ = nullptr;
    TextLabel* note_;
    SearchField* search_;
    DeviceStrip* device_ = nullptr;
};

} // namespace vitrine::ui
