// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One line of names and values, 28 px high: what a run was started with. It elides from the right; the tool tip has
// everything. A link at the right says what can be done with it.

#include <QString>
#include <QWidget>
#include <utility>
#include <vector>

class QPushButton;

namespace vitrine::ui {

class FactStrip final : public QWidget {
    Q_OBJECT

public:
    FactStrip(const QString& title, const QString& link, QWidget* parent);
    void setFacts(std::vector<std::pair<QString, QString>> facts);
    QPushButton* link() const { return link_; }
    QString asText() const; ///< "Model gpt-oss-20b, Method LoRA"

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QString title_;
    std::vector<std::pair<QString, QString>> facts_;
    QPushButton* link_;
};

} // namespace vitrine::ui
