// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A bar over the view, 32 high: one sentence and buttons. Hidden while it has nothing to say.

#include <QString>
#include <QWidget>
#include <functional>
#include <vector>

class QHBoxLayout;
class QPushButton;

namespace vitrine::ui {

class TextLabel;

class NoticeBar final : public QWidget {
    Q_OBJECT

public:
    enum class Tone { Warning, Plain };
    struct Button {
        QString text;
        std::function<void()> action;
    };

    NoticeBar(Tone tone, std::vector<Button> buttons, QWidget* parent = nullptr);

    /// An empty sentence hides the bar.
    void say(const QString& sentence);
    QString sentence() const;
    QPushButton* button(std::size_t index) const { return buttons_.at(index); }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    Tone tone_;
    TextLabel* sentence_;
    std::vector<QPushButton*> buttons_;
};

} // namespace vitrine::ui
