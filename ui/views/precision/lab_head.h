// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The line over a part of the Precision lab: what it is, facts at the right, and over the map the swatches of its
// scale.

#include <QWidget>
#include <optional>

#include "ui/models/precision/error_scale.h"

namespace vitrine::ui {

class LabHead final : public QWidget {
    Q_OBJECT

public:
    explicit LabHead(const QString& title, QWidget* parent);
    void setTitle(const QString& title);
    void setMono(bool on) { mono_ = on; } ///< the title is a name in code
    void setFacts(const QString& facts);
    void setAlarming(bool on); ///< the facts say that something failed
    void setScale(const std::optional<ErrorScale>& scale);
    const QString& title() const { return title_; }
    const QString& facts() const { return facts_; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    QString title_, facts_;
    std::optional<ErrorScale> scale_;
    bool mono_ = false, alarming_ = false;
};

} // namespace vitrine::ui
