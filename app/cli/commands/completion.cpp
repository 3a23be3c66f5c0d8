// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Completion scripts. They are made from the parser itself, so they always match it.

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/commands/commands.h"

namespace vitrine::app {

namespace {

struct OptionText {
    std::vector<std::string> flags;
    std::vector<std::string> choices;
    bool takesValue = false;
    bool takesFile = false;
    std::string help;
};

struct CommandText {
    std::string path; ///< "plan generate", empty for the program itself
    std::string help;
    std::vector<std::string> subcommands;
    std::vector<OptionText> options;
    std::vector<std::string> arguments; ///< choices of the positional argument
};

std::vector<std::string> splitChoices(const std::string& type) {
    std::vector<std::string> words;
    // "auto|cpu|meta" are choices, "FILE|RUN" and "TEXT" are not.
    const bool choices = type.find('|') != std::string::npos &&
                         std::none_of(type.begin(), type.end(), [](unsigned char c) { return std::isupper(c) != 0; });
    for (std::size_t begin = 0; choices && begin <= type.size();) {
        const std::size_t end = std::min(type.find('|', begin), type.size());
        words.push_back(type.substr(begin, end - begin));
        begin = end + 1;
    }
    return words;
}

OptionText wordsOf(const CLI::Option& option) {
    OptionText words;
    for (const std::string& name : option.get_snames()) {
        words.flags.push_back("-" + name);
    }
    for (const std::string& name : option.get_lnames()) {
        words.flags.push_back("--" + name);
    }
    words.takesValue = option.get_expected_min() > 0;
    words.choices = splitChoices(option.get_type_name());
    const bool model = option.check_lname("model");
    words.takesFile = model || option.get_type_name().starts_with("FILE") || option.get_type_name().starts_with("SPEC");
    words.help = option.get_description();
    return words;
}

void collect(const CLI::App& app, const std::string& path, const std::vector<OptionText>& inherited,
             std::vector<CommandText>& out) {
    CommandText command;
    command.path = path;
    command.help = app.get_description();
    command.options = inherited;
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_positional()) {
            command.arguments = splitChoices(option->get_type_name());
        } else {
            command.options.push_back(wordsOf(*option));
        }
    }
    const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
    for (const CLI::App* sub : subcommands) {
        command.subcommands.push_back(sub->get_name());
    }
    // The program's --json and -v may stand after a command; every command has its own --help.
    std::vector<OptionText> passedOn = inherited;
    if (path.empty()) {
        for (const OptionText& option : command.options) {
            if (option.flags.back() == "--json" || option.flags.back() == "--verbose") {
                passedOn.push_back(option);
            }
        }
    }
    out.push_back(command);
    for (const CLI::App* sub : subcommands) {
        collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), passedOn, out);
    }
}

std::string words(const CommandText& command) {
    std::vector<std::string> all = command.subcommands;
    all.insert(all.end(), command.arguments.begin(), command.arguments.end());
    for (const OptionText& option : command.options) {
        all.insert(all.end(), option.flags.begin(), option.flags.end());
    }
    return fmt::format("{}", fmt::join(all, " "));
}

std::string bashScript(const std::vector<CommandText>& commands) {
    std::string script = R"(# bash completion for vitrine
_vitrine() {
    local cur prev path word i
    cur="${COMP_WORDS[COMP_CWORD]}"
    prev="${COMP_WORDS[COMP_CWORD-1]}"
    path=""
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${path:+$path }${COMP_WORDS[i]}"
        case "$word" in
)";
    for (const CommandText& command : commands) {
        if (!command.path.empty()) {
            script += fmt::format("            \"{}\") path=\"$word\" ;;\n", command.path);
        }
    }
    script += R"(        esac
    done
    case "$path:$prev" in
)";
    for (const CommandText& command : commands) {
        for (const OptionText& option : command.options) {
            std::vector<std::string> patterns;
            patterns.reserve(option.flags.size());
            for (const std::string& flag : option.flags) {
                patterns.push_back(fmt::format("\"{}:{}\"", command.path, flag));
            }
            if (!option.choices.empty()) {
                script += fmt::format("        {}) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); return ;;\n",
                                      fmt::join(patterns, "|"), fmt::join(option.choices, " "));
            } else if (option.takesFile) {
                script += fmt::format("        {}) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n",
                                      fmt::join(patterns, "|"));
            } else if (option.takesValue) {
                script += fmt::format("        {}) return ;;\n", fmt::join(patterns, "|"));
            }
        }
    }
    script += "    esac\n    case \"$path\" in\n";
    for (const CommandText& command : commands) {
        script += fmt::format("        \"{}\") COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")) ;;\n", command.path,
                              words(command));
    }
    script += R"(    esac
    if [[ "$cur" != -* ]]; then
        COMPREPLY+=($(compgen -f -- "$cur"))
    fi
}
complete -o filenames -F _vitrine vitrine
)";
    return script;
}

/// In single quotes, without what a shell or a description list would read.
std::string plain(std::string text) {
    text.erase(
        std::remove_if(text.begin(), text.end(), [](char c) { return c == '\'' || c == '`' || c == '[' || c == ']'; }),
        text.end());
    std::replace(text.begin(), text.end(), ':', ',');
    return text;
}

std::string zshScript(const std::vector<CommandText>& commands) {
    std::string script = R"(#compdef vitrine
_vitrine() {
    local path="" word i
    local -a candidates
    for ((i = 2; i < CURRENT; i++)); do
        word="${path:+$path }${words[i]}"
        case "$word" in
)";
    std::string choices;
    std::string candidates;
    for (const CommandText& command : commands) {
        if (!command.path.empty()) {
            script += fmt::format("            '{}') path=\"$word\" ;;\n", command.path);
        }
        std::string list;
        for (const std::string& sub : command.subcommands) {
            const auto same = std::find_if(commands.begin(), commands.end(), [&](const CommandText& other) {
                return other.path == (command.path.empty() ? sub : command.path + " " + sub);
            });
            list += fmt::format(" '{}:{}'", sub, plain(same->help));
        }
        for (const std::string& argument : command.arguments) {
            list += fmt::format(" '{}'", argument);
        }
        for (const OptionText& option : command.options) {
            for (const std::string& flag : option.flags) {
                list += fmt::format(" '{}:{}'", flag, plain(option.help));
                if (!option.choices.empty()) {
                    choices += fmt::format("        '{}:{}') compadd -- {}; return ;;\n", command.path, flag,
                                           fmt::join(option.choices, " "));
                } else if (option.takesFile) {
                    choices += fmt::format("        '{}:{}') _files; return ;;\n", command.path, flag);
                } else if (option.takesValue) {
                    choices += fmt::format("        '{}:{}') return ;;\n", command.path, flag);
                }
            }
        }
        candidates += fmt::format("        '{}') candidates=({}) ;;\n", command.path, list);
    }
    script += "        esac\n    done\n    case \"$path:${words[CURRENT-1]}\" in\n" + choices +
              "    esac\n    case \"$path\" in\n" + candidates + R"(    esac
    _describe 'vitrine' candidates
    _files
}
compdef _vitrine vitrine
)";
    return script;
}

std::string fishScript(const std::vector<CommandText>& commands) {
    std::string script = "# fish completion for vitrine\n";
    std::vector<std::string> top;
    for (const CommandText& command : commands) {
        if (!command.path.empty() && command.path.find(' ') == std::string::npos) {
            top.push_back(command.path);
        }
    }
    for (const CommandText& command : commands) {
        std::string condition = fmt::format("not __fish_seen_subcommand_from {}", fmt::join(top, " "));
        if (!command.path.empty()) {
            condition.clear();
            for (std::size_t begin = 0; begin <= command.path.size();) {
                const std::size_t end = std::min(command.path.find(' ', begin), command.path.size());
                condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ",
                                         command.path.substr(begin, end - begin));
                begin = end + 1;
            }
        }
        for (const std::string& sub : command.subcommands) {
            script += fmt::format("complete -c vitrine -n '{}' -a '{}'\n", condition, sub);
        }
        for (const OptionText& option : command.options) {
            std::string line = fmt::format("complete -c vitrine -n '{}'", condition);
            for (const std::string& flag : option.flags) {
                line += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
            }
            if (!option.choices.empty()) {
                line += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
            } else if (option.takesFile) {
                line += " -r -F";
            } else if (option.takesValue) {
                line += " -x";
            }
            script += fmt::format("{} -d '{}'\n", line, plain(option.help));
        }
    }
    return script;
}

} // namespace

void addCompletion(CLI::App& app, CommandLine& line) {
    CLI::App* command = addCommand(app, "completion", "Print a completion script for a shell",
                                   "vitrine completion bash > ~/.local/share/bash-completion/completions/vitrine");
    const auto shell = std::make_shared<std::string>();
    command->add_option("shell", *shell, "The shell")
        ->type_name("bash|zsh|fish")
        ->check(CLI::IsMember({"bash", "zsh", "fish"}))
        ->required();
    command->callback([&app, &line, shell] {
        line.action = [&app, shell] {
            std::vector<CommandText> commands;
            collect(app, "", {}, commands);
            printOut(*shell == "bash"  ? bashScript(commands)
                     : *shell == "zsh" ? zshScript(commands)
                                       : fishScript(commands));
            return 0;
        };
    });
}

} // namespace vitrine::app
