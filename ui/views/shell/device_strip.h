// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The device of the next run at the right of the tool bar: name, memory, load, power, temperature and clock as they are
// now, and a menu to choose another one. A mark on the bar is the budget of run A, where that ran on this device.
// Without a feed it says what run A ran on, its budget and its peak.

#include <QPointer>
#include <QToolButton>
#include <optional>
#include <vector>

#include "ui/models/common/device_feed.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

class DeviceStrip final : public QToolButton {
    Q_OBJECT

public:
    /// `feed` may be null.
    DeviceStrip(SessionDocument* document, DeviceFeed* feed, QWidget* parent);
    ~DeviceStrip() override;

    void setNarrow(bool narrow); ///< the bar alone
    /// Takes as many of its parts as go into `width` pixels: the last ones go first, the bar stays.
    void fit(int width);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

    /// What is painted, from left to right, without the bar.
    QStringList shownTexts() const;
    QString spoken() const { return accessibleName(); }

protected:
    bool event(QEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    struct Part {
        QString text;
        int slot = 0; ///< width that does not change with the reading
        bool strong = false;
        bool warns = false;
        bool beforeBar = false;
    };
    void refreshRun();
    void refreshDevice();
    void makeParts();
    void fillMenu();
    void updateWatch();
    void updateTexts();
    int widthOf(std::size_t parts) const;

    SessionDocument* document_;
    QPointer<DeviceFeed> feed_;
    std::optional<DeviceEntry> device_;
    std::optional<DeviceReading> reading_;
    std::vector<Part> parts_; ///< the most wanted ones first
    std::size_t count_ = 0;   ///< of them, that go into the width
    QString runDevice_, runBudget_, runLine_, runOn_;
    std::optional<std::uint64_t> budget_; ///< of run A
    double runUsed_ = 0;
    bool narrow_ = false, menuOpen_ = false;
    int room_ = 1 << 20;
    QPointer<QWidget> watchedWindow_;
};

} // namespace vitrine::ui
